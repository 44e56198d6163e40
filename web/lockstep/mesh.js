// Triangle meshes: read from a file's bytes, and their energies minimised.
import { InputError } from "./errors.js";

/** A mesh of OBJ, PLY or STL bytes, repaired where that is due. */
export class Mesh {
  #core;
  constructor(core, bytes, name) {
    const given = ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
    const { handle, positions, faces, ...counts } = core.withBytes(given, (address, size) => core.call("mesh", { name: String(name), address, bytes: size }));
    this.#core = core;
    this.handle = handle;
    this.name = String(name);
    /** vertices, edges, triangles, boundaries, pieces; repaired: what was changed. */
    this.counts = counts;
    this.positions = Float32Array.from(positions);
    this.faces = Int32Array.from(faces);
    core.watch(this, "free_mesh", { mesh: handle });
  }
  dispose() {
    this.#core.unwatch(this, "free_mesh", { mesh: this.handle });
  }
}

/** An energy of a mesh with vertices that are held. Made by lockstep.meshProblem. */
export class MeshProblem {
  #core;
  #done = 0;
  constructor(core, { handle, device }, handles) {
    this.#core = core;
    this.handle = handle;
    /** The device of the last minimisation. */
    this.device = device;
    this.handles = handles;
    core.watch(this, "free_mesh_problem", { problem: handle });
  }
  /** Runs L-BFGS from where the mesh is, with the handles at `targets` (three numbers each), until it ends, onFrame gives false or
   * stop() is called. onFrame gets { positions, iterations, cost } about as often as pages draw. */
  async minimise({ targets, iterations = 100000, onFrame } = {}) {
    const core = this.#core;
    if (targets?.length !== 3 * this.handles.length) throw new InputError("targets", "MeshProblem.minimise", `three numbers for each of ${this.handles.length} handles`);
    const request = { problem: this.handle, targets: Array.from(targets), iterations, done: this.#done, budget: 60 };
    const result = await core.callWaiting("minimise_mesh", request, 0, onFrame);
    this.#done += result.iterations;
    this.device = result.device;
    return { ...result, positions: Float32Array.from(result.positions), total: this.#done };
  }
  /** Ends a minimisation that runs at its next state. */
  stop() {
    this.#core.stop();
  }
  dispose() {
    this.#core.unwatch(this, "free_mesh_problem", { problem: this.handle });
  }
}
