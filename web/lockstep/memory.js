// Places, buffers, variables and arrays of the kernel that is being traced.
import { authorsPlace } from "./core.js";
import { InputError } from "./errors.js";
import { wholeNumber } from "./numbers.js";
import { isTraced, operand, Trace, traced, Val } from "./values.js";

const valueType = (type) => ({ f16: "f32", bf16: "f32", u8: "u32" })[type] ?? type;

function checkTrace(handle, what) {
  if (handle._trace !== Trace.current) throw new InputError(`${what} of another kernel`, authorsPlace(), "that of the kernel that is being traced");
}

/** A point of the domain plus offsets that are known while tracing; x is the fastest axis. */
export class Point {
  constructor(core, offsets) {
    this._core = core;
    this._offsets = offsets;
    this._trace = Trace.current;
  }
  /** The lane's coordinate along an axis, or with a whole number the shifted point. */
  _axis(axis, name, shift) {
    checkTrace(this, "a point");
    if (axis >= this._offsets.length)
      throw new InputError(`axis ${name} of a ${this._offsets.length}-D point`, authorsPlace(), "x, y, z of a domain that has them");
    if (shift !== undefined) {
      const offsets = [...this._offsets];
      offsets[axis] = wholeNumber(offsets[axis] + wholeNumber(shift, "a shift of a point by"), "a shift of a point by");
      return new Point(this._core, offsets);
    }
    const at = new Val(this._core, traced(this._core, "place", { what: "coord", axis }));
    return this._offsets[axis] ? at.add(this._offsets[axis]) : at;
  }
  x(shift) { return this._axis(0, "x", shift); }
  y(shift) { return this._axis(1, "y", shift); }
  z(shift) { return this._axis(2, "z", shift); }
}

/** The lane's own point. */
export class At extends Point {
  constructor(core, rank) {
    super(core, Array(rank).fill(0));
  }
  /** Extent of the domain along an axis, 0 = x. */
  extent(axis) {
    checkTrace(this, "a point");
    return new Val(this._core, traced(this._core, "place", { what: "extent", axis: wholeNumber(axis, "axis", 0, this._offsets.length - 1) }));
  }
}

/** The lane's place in a groups kernel; the extent counts groups. Axis 0 = x. */
export class Group {
  constructor(core, rank, sizes) {
    this._core = core;
    this._rank = rank;
    this._sizes = [...sizes, 1, 1, 1].slice(0, 3);
    this._trace = Trace.current;
  }
  _place(what, axis, rank) {
    checkTrace(this, "a group");
    return new Val(this._core, traced(this._core, "place", { what, axis: wholeNumber(axis, "axis", 0, rank - 1) }));
  }
  id(axis = 0) { return this._place("coord", axis, this._rank); }
  count(axis = 0) { return this._place("extent", axis, this._rank); }
  local(axis = 0) { return this._place("local", axis, 3); }
  lane() { return this._place("lane", 0, 3); }
  size(axis = 0) { return this._sizes[wholeNumber(axis, "axis", 0, 2)]; }
  lanes() { return this._sizes[0] * this._sizes[1] * this._sizes[2]; }
  /** The lane's number along the axis over all groups. */
  global(axis = 0) { return this.id(axis).mul(this.size(axis)).add(this.local(axis)); }
}

/** A coordinate: a traced i32, or a whole number. */
function coordinate(value, low) {
  return isTraced(value) ? operand(value) : `i${wholeNumber(value, "a coordinate", low)}`;
}

/** A buffer of the kernel. Coordinates are given slowest axis first: a point of the domain, leading coordinates and a point, or
 * explicit ones. Reads at points beyond the edge clamp unless another rule is named; explicit coordinates must lie inside unless a
 * rule is. */
export class TracedBuffer {
  constructor(core, handle, { type, rank, kind, name }, boundary = "") {
    Object.assign(this, { _core: core, _handle: handle, _as: { type, rank, kind, name }, _boundary: boundary, _trace: Trace.current });
  }
  _with(boundary) { return new TracedBuffer(this._core, this._handle, this._as, boundary); }
  clamped() { return this._with("clamp"); }
  periodic() { return this._with("periodic"); }
  zero() { return this._with("zero"); }
  unchecked() { return this._with("unchecked"); }

  _at(coordinates) {
    checkTrace(this, "a buffer");
    const point = coordinates.at(-1) instanceof Point ? coordinates.at(-1) : undefined;
    if (point) checkTrace(point, "a point");
    const low = this._boundary === "" || this._boundary === "unchecked" ? 0 : -(2 ** 31);
    const at = (point ? coordinates.slice(0, -1) : coordinates).map((c) => coordinate(c, low));
    return { buffer: this._handle, at, ...(point && { offsets: point._offsets }) };
  }
  /** Extent of an axis (slowest first), i32. */
  size(axis) {
    checkTrace(this, "a buffer");
    return new Val(this._core, traced(this._core, "size", { buffer: this._handle, axis: wholeNumber(axis, "axis", 0, this._as.rank - 1) }));
  }
  load(...coordinates) {
    if (this._as.kind === "write") throw new InputError(`a read of ${this._as.name}, which is Out`, authorsPlace(), "InOut, or Grid");
    return new Val(this._core, traced(this._core, "load", { ...this._at(coordinates), boundary: this._boundary }));
  }
  /** The value comes last. */
  store(...coordinatesAndValue) {
    if (this._as.kind === "read") throw new InputError(`a store into ${this._as.name}, which is Grid`, authorsPlace(), "Out or InOut");
    const given = coordinatesAndValue.at(-1);
    if (this._as.type === "u8" && typeof given === "number" && !(Number.isInteger(given) && given >= 0 && given <= 255))
      throw new InputError(`${given} stored in ${this._as.name}, of u8`, authorsPlace(), "0 to 255");
    const value = operand(given, valueType(this._as.type));
    traced(this._core, "store", { ...this._at(coordinatesAndValue.slice(0, -1)), value });
  }
  /** add, min, max, or, and, exchange on i32 and u32 at explicit coordinates; gives the old value. */
  atomic(op, ...coordinatesAndValue) {
    const value = operand(coordinatesAndValue.at(-1), valueType(this._as.type));
    return new Val(this._core, traced(this._core, "atomic", { op, ...this._at(coordinatesAndValue.slice(0, -1)), value }));
  }
  [Symbol.iterator]() {
    throw new InputError("a JavaScript loop over traced memory", authorsPlace(), "lockstep.for(n, (i) => …) and load(i)");
  }
}

/** A variable of one lane that if and loops may change. */
export class Var {
  constructor(core, initial, type) {
    this._core = core;
    this._trace = Trace.current;
    this.type = type ?? (isTraced(initial) ? initial.type : typeof initial === "boolean" ? "bool" : "f32");
    if (isTraced(initial) && initial.type !== this.type)
      throw new InputError(`a variable of ${this.type} that begins as ${initial.type}`, authorsPlace(), "a value of that type (cast converts)");
    const first = isTraced(initial) ? initial : core.functions.cast(initial, this.type);
    this._handle = traced(core, "variable", { value: operand(first) });
  }
  _operand() {
    checkTrace(this, "a variable");
    return this._handle;
  }
  /** The value at this moment. */
  get() {
    checkTrace(this, "a variable");
    return new Val(this._core, traced(this._core, "get", { variable: this._handle }));
  }
  set(value) {
    checkTrace(this, "a variable");
    traced(this._core, "set", { variable: this._handle, value: operand(value, this.type) });
  }
  /** Adds to it. */
  add(value) { this.set(this.get().add(value)); }
  [Symbol.toPrimitive]() {
    throw new InputError("an operator of JavaScript on a variable of a kernel", authorsPlace(), "v.get().add(x), v.set(x)");
  }
}

/** An array of one lane or of a group; its first contents are undefined. */
export class TracedArray {
  constructor(core, type, count, shared) {
    this._core = core;
    this._trace = Trace.current;
    this.type = type;
    this.count = wholeNumber(count, "an array of", 1);
    this._handle = traced(core, "array", { type, count, shared });
  }
  _at(at) {
    checkTrace(this, "an array");
    if (!isTraced(at)) wholeNumber(at, "a coordinate", 0, this.count - 1);
    return { array: this._handle, at: coordinate(at, 0) };
  }
  load(at) { return new Val(this._core, traced(this._core, "array_load", this._at(at))); }
  store(at, value) { traced(this._core, "array_store", { ...this._at(at), value: operand(value, valueType(this.type)) }); }
}
