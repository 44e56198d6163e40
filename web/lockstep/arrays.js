// Arrays of a page inside the core: handle, shape and type of each.
import { InputError } from "./errors.js";

function bytesOf(given, where) {
  if (ArrayBuffer.isView(given)) return new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  if (given instanceof ArrayBuffer) return new Uint8Array(given);
  throw new InputError(typeof given, where, "bytes: an ArrayBuffer or a typed array");
}
function taken(core, call, bytes, members) {
  return core.withBytes(bytes, (address, size) => core.call(call, { ...members, address, bytes: size }));
}

/** The array of an .npy file. */
export function takeNpy(core, bytes, name) {
  return taken(core, "npy", bytesOf(bytes, String(name)), { name: String(name) });
}
/** Rows of numbers, from the north-west corner on. */
export function takeGrid(core, { values, rows, cols }, where) {
  if (!(values instanceof Float32Array)) throw new InputError(typeof values, where, "a Float32Array");
  return taken(core, "grid", bytesOf(values, where), { rows, cols });
}
