// Numbers as the core takes them, to the last bit.
import { InputError } from "./errors.js";
import { authorsPlace } from "./core.js";

const word = new DataView(new ArrayBuffer(8));
const isFloat = (type) => ["f16", "bf16", "f32", "f64"].includes(type);

/** A number of the page for a value of `type`: of floats rounded to it, of whole numbers held exactly or refused. */
export function numberFor(type, value, where = authorsPlace) {
  if (typeof value === "boolean") return value;
  if (typeof value === "bigint") {
    if (value < -(2n ** 63n) || value >= 2n ** 64n) throw new InputError(`${value} with a traced ${type}`, where(), "a number of at most 64 bits");
    return value >= 2n ** 63n ? `u${value}` : `i${value}`;
  }
  if (typeof value !== "number") {
    const what = value === null || typeof value !== "object" ? String(value) : value.constructor?.name ?? "an object";
    throw new InputError(`${what} for a value of ${type}`, where(), "a number, or a value of the kernel that is being traced");
  }
  if (!isFloat(type) && Number.isSafeInteger(value) && !Object.is(value, -0)) return `i${value}`;
  word.setFloat64(0, value);
  return `f${word.getBigUint64(0).toString(16)}`;
}

const least = { i32: -(2n ** 31n), u32: 0n, i64: -(2n ** 63n), u64: 0n, u8: 0n };
const most = { i32: 2n ** 31n - 1n, u32: 2n ** 32n - 1n, i64: 2n ** 63n - 1n, u64: 2n ** 64n - 1n, u8: 255n };

/** A list of numbers as elements of a type: floats rounded to it, whole numbers held exactly or refused. */
export function elementsFrom(Elements, type, list, where) {
  if (type === "f16" || type === "bf16") throw new InputError("numbers", where, "a Uint16Array of their words");
  return Elements.from(list, (value) => {
    const number = typeof value === "number", whole = typeof value === "bigint" || (number && Number.isInteger(value));
    if (isFloat(type) ? number : whole && BigInt(value) >= least[type] && BigInt(value) <= most[type])
      return type === "i64" || type === "u64" ? BigInt(value) : Number(value);
    throw new InputError(String(value), where, `numbers that ${type} holds`);
  });
}

/** Refuses what is left of an object of options. */
export function refuseOthers(others, where, expected) {
  for (const name of Object.keys(others)) throw new InputError(`option ${name}`, where, expected);
}

/** A whole number of the page that is known while tracing. */
export function wholeNumber(value, what, low = -(2 ** 31), high = 2 ** 31 - 1) {
  if (!Number.isInteger(value) || value < low || value > high)
    throw new InputError(`${what} ${typeof value === "object" ? "that is traced" : String(value)}`, authorsPlace(),
      `a whole number from ${low} to ${high} that is known while tracing`);
  return value;
}
