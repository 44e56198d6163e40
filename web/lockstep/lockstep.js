// Lockstep in a page: the C++ core as WebAssembly, kernels traced from JavaScript, with the bits of the native program.
//
//   import { load, Grid, Out } from "./lockstep/lockstep.js";
//   const lockstep = await load();
//   const device = await lockstep.open("cpu");
//   const heat = lockstep.kernel({ t: Grid("f32", 2), next: Out("f32", 2), a: "f32" }, (at, t, next, a) => {
//     const here = t.load(at);
//     next.store(at, here.add(a.mul(t.load(at.x(1)).add(t.load(at.x(-1))).sub(here.mul(2)))));
//   });
//   device.launch(heat, [64, 64], now, then, 0.1);
import * as cases from "./cases.js";
import { makeCity, makeSampleCity } from "./city.js";
import { arraysOf } from "./arrays.js";
import { commandFunctions } from "./commands.js";
import { Core } from "./core.js";
import { Device } from "./device.js";
import { flowFunctions } from "./flow.js";
import { forecastFunctions } from "./forecast.js";
import { Kernel } from "./kernel.js";
import { TracedArray, Var } from "./memory.js";
import { Mesh, MeshProblem } from "./mesh.js";
import { refuseOthers } from "./numbers.js";
import { pdeFunctions } from "./pde.js";
import { Residual } from "./residual.js";
import { makeFlow } from "./turbulence.js";
import { addMethods, constant, valueFunctions } from "./values.js";

export { Buffer, Device } from "./device.js";
export { DeviceError, InputError, InternalError, LockstepError, UnsupportedError } from "./errors.js";
export { Grid, InOut, Kernel, Out } from "./kernel.js";
export { Mesh, MeshProblem } from "./mesh.js";
export { City } from "./city.js";
export { Flow } from "./turbulence.js";

/** What the core keeps for an object of the page ends with it. */
function watched(core) {
  const release = (call, request) => core.whenIdle(() => {
    if (!core.stopped) core.call(call, request);
  });
  const registry = new FinalizationRegistry(({ call, request }) => release(call, request));
  core.watch = (object, call, request) => registry.register(object, { call, request }, object);
  core.unwatch = (object, call, request) => {
    if (registry.unregister(object)) release(call, request);
  };
  return core;
}

class Lockstep {
  #core;
  constructor(core) {
    this.#core = core;
    core.functions = valueFunctions(core);
    addMethods(core.functions);
    Object.assign(this, core.functions, flowFunctions(core));
    /** Least squares of files, losses of partial differential equations, and forecasts of trainings: as lockstep.solve,
     * lockstep.pde and lockstep.forecast of Python. */
    const commands = (application) => commandFunctions(core, application);
    /** Turbulence on a periodic box: flow(settings) with settings of `lockstep flow run`: nx, ny, viscosity, closure, forcing,
     * forcing_wavenumber, forcing_amount, drag, cfl or dt, initial, seed …; `device`; `field`: { name, bytes } of an .npy file. */
    this.flow = Object.assign((settings = {}) => makeFlow(core, settings), commands("flow"));
    Object.assign(this, { solve: commands("solve"), pde: { ...commands("pde"), ...pdeFunctions(core) }, forecast: forecastFunctions(core) });
  }
  /** Opens the first device of a comma-separated list that works: "webgpu", "cpu" (WebAssembly SIMD), "interp", "auto". Why
   * others did not is in info.refused. options.limits lowers limits. */
  async open(names = "auto", { limits = {}, ...others } = {}) {
    refuseOthers(others, "lockstep.open", "limits");
    const request = { names: String(names), limits };
    const core = this.#core, asks = /webgpu|auto/.test(request.names);
    const opened = asks ? await core.callWaiting("open", request) : core.call("open", request);
    for (const { name, reason } of opened.refused) core.print(`[GPU] ${name} failed: ${reason}. CPU fallback.`);
    return new Device(core, opened);
  }
  /** Traces a kernel. `parameters` names each buffer and number; `body` gets the place (`at`, or with options.group a group) and
   * them. options: name, rank (of the domain), group (lanes), contract. */
  kernel(parameters, body, options = {}) {
    return new Kernel(this.#core, parameters, body, options);
  }

  /** Expressions such as "sin(x) - y^2" with their derivatives, as one kernel of `device`. */
  residual(device, variables, expressions) {
    return new Residual(this.#core, device, variables, expressions);
  }

  /** A triangle mesh of a file's bytes; its name ends in .obj, .ply or .stl. */
  mesh(bytes, name) { return new Mesh(this.#core, bytes, name); }
  /** An energy of a mesh: "springs", "bend", "smooth", "arap", "developable" … `fixed` and `handles` are vertices that are held,
   * the latter where minimise() says. Device "auto" is WebGPU on hardware where there is some. */
  async meshProblem(mesh, { energy, device = "auto", fixed = [], handles = [], start = mesh.positions, ...others }) {
    refuseOthers(others, "lockstep.meshProblem", "energy, device, fixed, handles, start");
    const request = { mesh: mesh.handle, energy, device, fixed, handles, start: Array.from(start) };
    return new MeshProblem(this.#core, await this.#core.callWaiting("mesh_problem", request), handles);
  }

  /** A city of height grids: dsm, and dem, cdsm (canopies), tdsm (trunks) where there are some; pixel_size in metres; `device`. */
  city(grids) { return makeCity(this.#core, grids); }
  /** The made-up city of `lockstep urban sample`: rows, cols, pixel_size, seed. */
  sampleCity(options = {}) { return makeSampleCity(this.#core, options); }
  /** The weather in the text of a file: the ends of its first and last interval, and its place if it says so. */
  weather(text, name) { return this.#core.call("weather", { weather: String(text), name: String(name) }); }
  /** Where the sun is (degrees) at a local time such as "2015-06-21T12:00", `utc_offset` hours ahead of universal time. */
  sun(time, latitude, longitude, utc_offset) { return this.#core.call("sun", { time, latitude, longitude, utc_offset }); }

  /** A number as a value of a type: "f32", "f64", "i32", "u32", "i64", "u64", "bool". */
  constant(type, number) { return constant(this.#core, type, number); }
  /** A variable that if and loops may change; of f32 unless the first value or `type` says otherwise. */
  var(initial, type) { return new Var(this.#core, initial, type); }
  /** An array of one lane, and one that the lanes of a group share. */
  local(type, count) { return new TracedArray(this.#core, type, count, false); }
  shared(type, count) { return new TracedArray(this.#core, type, count, true); }

  /** The arrays of a file { name, bytes } in .npz or .npy, by name. */
  arrays(file) { return arraysOf(this.#core, file); }

  /** The cases of this core: name, dtype, sizes. */
  cases() { return this.#core.call("cases"); }
  verify(device, options) { return cases.verify(this.#core, device, options); }
  digests(device, options) { return cases.digests(this.#core, device, options); }
  bench(device, options) { return cases.bench(this.#core, device, options); }

  /** Threads of kernels on "cpu": resolved when the workers take part, with count, and the reason where it is 1. */
  threads() { return this.#core.threadsReady(); }
  /** Ends the workers. Nothing of this core can be used any more. */
  close() { this.#core.end(); }

  /** Bytes of the core's memory, and how many objects it holds for the page. */
  usage() { return { memoryBytes: this.#core.memoryBytes, ...this.#core.call("objects") }; }
  /** A request to the core as it is; for tests. */
  request(call, members) { return this.#core.call(call, members); }
}

/** Loads the core. options.wasm: its address, bytes or module (lockstep.wasm next to this file otherwise); options.print: where its
 * log lines go; options.threads: of kernels on "cpu", all of the processor's up to 8 unless it says otherwise; options.fused:
 * false for fma without relaxed SIMD, with the same bits. */
export async function load({ wasm = new URL("lockstep.wasm", import.meta.url), print = console.warn, ...options } = {}) {
  return new Lockstep(watched(await Core.load(wasm, print, options)));
}
