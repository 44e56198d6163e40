// Two-dimensional turbulence on a periodic box: a simulation that pages advance, stir and show.
import { takeNpy } from "./arrays.js";
import { InputError } from "./errors.js";

/** A simulation. Made by lockstep.flow. Each promise is to be awaited before the next call. */
export class Flow {
  #core;
  #settings;
  constructor(core, settings, { handle, ...status }) {
    this.#core = core;
    this.#settings = settings;
    this.handle = handle;
    this.#note(status);
    core.watch(this, "free_flow", { flow: handle });
  }
  #note({ device, fallbacks, notes, dt }) {
    /** The device in use, stages that fell back to the processor, the last hundred log lines, and the largest time step. */
    Object.assign(this, { device, fallbacks, notes: [...(this.notes ?? []), ...notes].slice(-100), dt });
  }
  /** Points along y and x. */
  get shape() {
    return [this.#settings.ny, this.#settings.nx];
  }
  /** Other viscosity, closure, forcing, drag or step from here on. */
  async change(settings) {
    for (const name of ["seed", "initial"])
      if (name in settings && settings[name] !== this.#settings[name])
        throw new InputError(`option ${name}`, "flow.change", "viscosity, closure, forcing, drag or step: a new flow has others");
    const next = { ...this.#settings, ...settings };
    this.#note(await this.#core.callWaiting("change_flow", { flow: this.handle, options: next }));
    this.#settings = next;
  }
  /** Stirs, then does so many steps. A stroke is [x, y, dx, dy]: a place as shares of the box, and the velocity that is added
   * there. Gives time, steps, energy and enstrophy (means over the box). */
  async advance(steps, strokes = []) {
    for (const stroke of strokes)
      if (!Array.from(stroke).every(Number.isFinite)) throw new InputError(`a stroke of ${Array.from(stroke).join(", ")}`, "flow.advance", "four finite numbers");
    const { time, steps: done, energy, enstrophy, ...status } = await this.#core.callWaiting("advance_flow",
      { flow: this.handle, steps, strokes: Array.from(strokes, (stroke) => Array.from(stroke)) });
    this.#note(status);
    return { time, steps: done, energy, enstrophy };
  }
  /** The vorticity: ny rows of nx numbers. */
  async vorticity() {
    const [ny, nx] = this.shape;
    return new Float32Array((await this.#core.callWaiting("flow_vorticity", { flow: this.handle }, 4 * ny * nx)).buffer);
  }
  /** Energy of the rings |k| = 0, 1, 2 … in units of 2 pi over the box's longer side. */
  async spectrum() {
    return Float64Array.from((await this.#core.callWaiting("flow_spectrum", { flow: this.handle })).energy);
  }
  dispose() {
    this.#core.unwatch(this, "free_flow", { flow: this.handle });
  }
}

/** `settings` as `lockstep flow run` has them; `field`: { name, bytes } of an .npy file to begin with, whose grid it is. */
export async function makeFlow(core, { device = "auto", field, ...settings }) {
  const options = { nx: 256, ny: settings.nx ?? 256, ...settings }, request = { device, options };
  if (!field) return new Flow(core, options, await core.callWaiting("flow", request));
  const array = takeNpy(core, field.bytes, field.name);
  try {
    if (array.shape.length === 2) [options.ny, options.nx] = array.shape;
    return new Flow(core, options, await core.callWaiting("flow", { ...request, field: array.handle }));
  } finally {
    core.whenIdle(() => core.call("free_array", { array: array.handle }));
  }
}
