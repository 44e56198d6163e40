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
import { Core } from "./core.js";
import { Device } from "./device.js";
import { flowFunctions } from "./flow.js";
import { Kernel } from "./kernel.js";
import { TracedArray, Var } from "./memory.js";
import { Residual } from "./residual.js";
import { addMethods, constant, valueFunctions } from "./values.js";

export { Buffer, Device } from "./device.js";
export { DeviceError, InputError, InternalError, LockstepError, UnsupportedError } from "./errors.js";
export { Grid, InOut, Kernel, Out } from "./kernel.js";

/** What the core keeps for an object of the page ends with it. */
function watched(core) {
  const release = (call, request) => {
    if (!core.stopped) core.call(call, request);
  };
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
  }
  /** Opens the first device of a comma-separated list that works: "cpu" (WebAssembly SIMD), "interp", "auto". */
  async open(names = "auto") {
    return new Device(this.#core, this.#core.call("open", { names: String(names) }));
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

  /** A number as a value of a type: "f32", "f64", "i32", "u32", "i64", "u64", "bool". */
  constant(type, number) { return constant(this.#core, type, number); }
  /** A variable that if and loops may change; of f32 unless the first value or `type` says otherwise. */
  var(initial, type) { return new Var(this.#core, initial, type); }
  /** An array of one lane, and one that the lanes of a group share. */
  local(type, count) { return new TracedArray(this.#core, type, count, false); }
  shared(type, count) { return new TracedArray(this.#core, type, count, true); }

  /** The cases of this core: name, dtype, sizes. */
  cases() { return this.#core.call("cases"); }
  verify(device, options) { return cases.verify(this.#core, device, options); }
  digests(device, options) { return cases.digests(this.#core, device, options); }

  /** Bytes of the core's memory, and how many objects it holds for the page. */
  usage() { return { memoryBytes: this.#core.memoryBytes, ...this.#core.call("objects") }; }
  /** A request to the core as it is; for tests. */
  request(call, members) { return this.#core.call(call, members); }
}

/** Loads the core. options.wasm: its address, bytes or module (lockstep.wasm beside this file otherwise); options.print: where its
 * log lines go. */
export async function load({ wasm = new URL("lockstep.wasm", import.meta.url), print = console.warn } = {}) {
  return new Lockstep(watched(await Core.load(wasm, print)));
}
