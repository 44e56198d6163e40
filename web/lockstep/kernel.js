// Kernels: functions of JavaScript that are traced once, for the types that their parameters declare.
import { authorsLine, authorsPlace } from "./core.js";
import { InputError } from "./errors.js";
import { refuseOthers, wholeNumber } from "./numbers.js";
import { At, Group, TracedBuffer } from "./memory.js";
import { Trace, Val } from "./values.js";

export const elementTypes = ["f32", "f64", "i32", "u32", "i64", "u64", "f16", "bf16", "u8"];
const numberTypes = ["f32", "f64", "i32", "u32", "i64", "u64", "bool"];

class BufferParameter {
  constructor(kind, type, rank) {
    if (!elementTypes.includes(type)) throw new InputError(`element type ${String(type)}`, authorsPlace(), elementTypes.join(", "));
    this.kind = kind;
    this.type = type;
    this.rank = wholeNumber(rank, "a rank of", 1, 4);
  }
}
/** A buffer that the kernel reads, writes, or both. */
export const Grid = (type, rank = 1) => new BufferParameter("read", type, rank);
export const Out = (type, rank = 1) => new BufferParameter("write", type, rank);
export const InOut = (type, rank = 1) => new BufferParameter("read_write", type, rank);

function declared(parameters) {
  if (typeof parameters !== "object" || parameters === null)
    throw new InputError("parameters", authorsPlace(), 'an object: { t: Grid("f32", 2), out: Out("f32", 2), a: "f32" }');
  return Object.entries(parameters).map(([name, as]) => {
    if (as instanceof BufferParameter) return { name, kind: as.kind, type: as.type, rank: as.rank };
    if (numberTypes.includes(as)) return { name, kind: "scalar", type: as, rank: 0 };
    throw new InputError(`parameter ${name}: ${typeof as === "string" ? as : typeof as}`, authorsPlace(), `Grid, Out, InOut or one of ${numberTypes.join(", ")}`);
  });
}

const byCore = Symbol("traced by the core");

/** A traced kernel. */
export class Kernel {
  #core;
  _isOf(core) {
    return this.#core === core;
  }
  constructor(core, parameters, body, { name, rank, group, contract = true, [byCore]: made, ...others } = {}) {
    refuseOthers(others, authorsPlace(), "name, rank, group, contract");
    this.#core = core;
    if (made) {
      Object.assign(this, { name, parameters, rank: 1 });
      this.#take(made);
      return;
    }
    if (typeof body !== "function") throw new InputError("a kernel without a function", authorsPlace(), "kernel(parameters, (at, …) => { … })");
    this.parameters = declared(parameters);
    this.name = String(name ?? (body.name || "kernel"));
    const written = this.parameters.find((p) => p.kind === "write" || p.kind === "read_write");
    if (!written) throw new InputError(`kernel ${this.name} without a buffer that it writes`, authorsPlace(), "Out or InOut among its parameters");
    this.rank = wholeNumber(rank ?? Math.min(written.rank, 3), "a domain of rank", 1, 3);
    if (group !== undefined && !(Array.isArray(group) && group.length >= 1 && group.length <= 3))
      throw new InputError("group", authorsPlace(), "lanes along x, y and z, 1 to 1024 of them: [256]");
    const sizes = (group ?? []).map((size) => wholeNumber(size, "a group of", 1, 1024));
    const place = () => (group ? new Group(core, this.rank, sizes) : new At(core, this.rank));
    const request = {
      name: this.name, domain: group ? "groups" : "points", rank: this.rank, group: sizes, contract: contract === true,
      parameters: this.parameters.map(({ kind, type, rank }) => ({ kind, type, rank })), line: authorsLine(),
    };
    this.#take(core.trace(request, (handles) => this.#run(handles, place, body)));
  }
  /** A kernel that the core has traced itself. */
  static traced(core, name, parameters, answer) {
    return new Kernel(core, parameters, undefined, { name, [byCore]: answer });
  }
  #take({ handle, fingerprint }) {
    this.handle = handle;
    /** A hash of the traced instructions. */
    this.fingerprint = fingerprint;
    this.#core.watch(this, "free_kernel", { kernel: handle });
  }

  #run(handles, place, body) {
    const core = this.#core;
    Trace.during(() => {
      const values = this.parameters.map((p, k) => (p.kind === "scalar" ? new Val(core, [handles[k], p.type]) : new TracedBuffer(core, handles[k], p)));
      for (const value of values) if (value instanceof Val) Trace.current.conditions.delete(value._handle);  // a parameter may be unused
      const result = body(place(), ...values);
      if (typeof result?.then === "function") throw new InputError("an async function", `kernel ${this.name}`, "a function that is traced at once");
      if (result !== undefined) throw new InputError("a kernel that returns a value", `kernel ${this.name}`, "stores into Out or InOut, and braces around the function's body");
    });
  }

  /** The traced instructions as text. */
  source() {
    return this.#core.call("source", { kernel: this.handle });
  }
  dispose() {
    this.#core.unwatch(this, "free_kernel", { kernel: this.handle });
  }
}
