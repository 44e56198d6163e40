// Values of the kernel that is being traced, and the functions of the kernel language.
import { authorsLine, authorsPlace } from "./core.js";
import { InputError } from "./errors.js";
import { numberFor, wholeNumber } from "./numbers.js";

/** Methods for the language's operators. */
export const operators = {
  add: "+", sub: "-", mul: "*", div: "/", mod: "%", and: "&", or: "|", xor: "^", shl: "<<", shr: ">>",
  eq: "==", ne: "!=", lt: "<", le: "<=", gt: ">", ge: ">=", neg: "unary -", not: "unary ~",
};

/** Values that are made while one kernel is traced. */
export class Trace {
  static #open = [];
  /** Conditions that nothing has used yet, with their places. */
  conditions = new Map();
  failed = undefined;

  static get current() {
    const trace = Trace.#open.at(-1);
    if (!trace) throw new InputError("an operation of kernels", authorsPlace(), "a function that lockstep.kernel traces");
    return trace;
  }
  static get isOpen() {
    return Trace.#open.length > 0;
  }
  /** Runs `work` as the innermost trace. */
  static during(work) {
    const trace = new Trace();
    Trace.#open.push(trace);
    try {
      work();
      if (trace.failed) throw trace.failed.error;  // of a block whose error the author caught
      for (const place of trace.conditions.values())
        throw new InputError("a condition that nothing uses", place,
          "select, lockstep.if or lockstep.while: if, &&, ||, ! and ?: of JavaScript take every traced value for true");
    } finally {
      Trace.#open.pop();
    }
  }
}

/** A value of one lane. Its methods are the words of the kernel language; numbers take its type. */
export class Val {
  constructor(core, [handle, type]) {
    this._core = core;
    this._handle = handle;
    this._trace = Trace.current;
    /** "f32", "f64", "i32", "u32", "i64", "u64" or "bool". */
    this.type = type;
    if (type === "bool") this._trace.conditions.set(handle, authorsPlace());
  }
  /** How the core knows it. */
  _operand() {
    if (this._trace !== Trace.current) throw new InputError("a value of another kernel", authorsPlace(), "one that this kernel's function made");
    this._trace.conditions.delete(this._handle);
    return this._handle;
  }
  [Symbol.toPrimitive]() {
    throw new InputError("an operator of JavaScript on a traced value", authorsPlace(),
      "methods: a.add(b), a.mul(2), a.lt(b), a.select(yes, no); for numbers of the page compute before the trace");
  }
  [Symbol.iterator]() {
    throw new InputError("a JavaScript loop over a traced value", authorsPlace(), "lockstep.for(n, (i) => …)");
  }
  toJSON() {
    throw new InputError("a traced value as text", authorsPlace(), "a number: it has no value while tracing");
  }
}

/** A value, or a variable, which counts with its value at this moment. */
export const isTraced = (value) => typeof value?._operand === "function";

/** An operand of a call: a traced value's handle, or a number for `type`. */
export function operand(value, type) {
  return isTraced(value) ? value._operand() : numberFor(type, value);
}
/** The type of numbers combined with these. */
export function typeOf(values) {
  const traced = values.find((v) => isTraced(v));
  if (!traced) throw new InputError("numbers without a traced value", authorsPlace(), "at least one traced operand");
  return traced.type;
}
export function operands(values) {
  const type = typeOf(values);
  return values.map((value) => operand(value, type));
}
/** One operation, from the author's line. */
export function traced(core, call, request) {
  void Trace.current;  // throws where no kernel is traced
  return core.call(call, { ...request, line: authorsLine() });
}

/** The functions of values: one for each word, and those that are no words. Val gets them as methods. */
export function valueFunctions(core) {
  const value = (made) => new Val(core, made);
  const functions = {};
  const arities = core.call("words");
  const symbols = new Map(Object.entries(operators).map(([name, symbol]) => [symbol, name]));
  const word = (name, text, arity) => {
    functions[name] = (...values) => {
      if (values.length !== arity) throw new InputError(`${name} of ${values.length} operands`, authorsPlace(), String(arity));
      return value(traced(core, "apply", { word: text, operands: operands(values) }));
    };
  };
  for (const [text, arity] of Object.entries(arities)) {
    const name = symbols.get(text) ?? text;
    word(name, text, arity);
  }
  for (const name of ["round", "rounded", "uniform"]) word(name, name, 1);
  functions.clamp = (x, low, high) => functions.min(functions.max(x, low), high);
  functions.select = (condition, yes, no) => {
    const both = isTraced(yes) || isTraced(no);
    const type = both ? typeOf([yes, no]) : typeof yes === "boolean" ? "bool" : "f32";
    const [a, b] = [yes, no].map((v) => (both ? operand(v, type) : constant(core, type, v)._operand()));
    return value(traced(core, "select", { condition: operand(condition, "bool"), operands: [a, b] }));
  };
  functions.powi = (x, n) => value(traced(core, "powi", { value: operand(x, "f32"), exponent: wholeNumber(n, "an exponent") }));
  functions.cast = (x, type) =>
    isTraced(x) ? value(traced(core, "convert", { value: operand(x), type })) : constant(core, type, x);
  functions.bitcast = (x, type) => value(traced(core, "bitcast", { value: operand(isTraced(x) ? x : constant(core, "u32", x)), type }));
  for (const how of ["sum", "min", "max"])
    functions[`group_${how}`] = (x) => value(traced(core, "group_reduce", { how, value: operand(x) }));
  return functions;
}

/** Methods of Val: the functions with the value as their first operand. */
export function addMethods(functions) {
  for (const name of Object.keys(functions))
    Object.defineProperty(Val.prototype, name, {
      configurable: true,
      value(...more) {
        return this._core.functions[name](this, ...more);
      },
    });
}

/** A number as a value. */
export function constant(core, type, number) {
  return new Val(core, traced(core, "constant", { type, value: numberFor(type, number) }));
}
