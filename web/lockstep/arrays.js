// Arrays of a page inside the core: handle, shape and type of each.
import { InputError } from "./errors.js";

/** The typed array of each element type; f16 and bf16 as their words. */
export const elements = {
  f32: Float32Array, f64: Float64Array, i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array,
  f16: Uint16Array, bf16: Uint16Array, u8: Uint8Array,
};

/** How many elements an array of a shape has. */
export const countOf = (shape) => shape.reduce((product, size) => product * size, 1);

export function bytesOf(given, where) {
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
/** An .npy file of { values, shape }. */
export function npyOf({ values, shape }, where) {
  const types = { f32: "<f4", f64: "<f8", i32: "<i4", u32: "<u4", i64: "<i8", u64: "<u8", u8: "|u1" };
  const type = Object.keys(types).find((name) => values?.constructor === elements[name]);
  if (!type || !Array.isArray(shape) || values.length !== countOf(shape))
    throw new InputError(values?.length === undefined ? typeof values : `${values.length} elements`, where, "{ values, shape } with a typed array of this shape");
  const text = `{'descr': '${types[type]}', 'fortran_order': False, 'shape': (${shape.map((size) => `${size},`).join(" ")}), }`;
  const size = 64 * Math.ceil((text.length + 11) / 64) - 10;  // elements begin at a multiple of 64
  const head = `\x93NUMPY\x01\x00${String.fromCharCode(size & 255, size >> 8)}${text.padEnd(size - 1)}\n`;
  const bytes = new Uint8Array(head.length + values.byteLength);
  bytes.set(Uint8Array.from(head, (letter) => letter.charCodeAt(0)));
  bytes.set(bytesOf(values, where), head.length);
  return bytes;
}
/** The arrays of an .npz or .npy file by name; that of an .npy file is `array`. */
export async function arraysOf(core, { name, bytes } = {}) {
  const given = bytesOf(bytes, String(name));
  if (String(name).endsWith(".npy")) return readArrays(core, { array: takeNpy(core, given, name) });
  return readArrays(core, taken(core, "npz", given, { name: String(name) }));
}
/** A typed array of a shape, slowest axis first; or an .npy file, { name, bytes }. */
export function takeArray(core, given, where) {
  if (given?.bytes) return takeNpy(core, given.bytes, given.name);
  const { values, shape } = given ?? {}, type = Object.keys(elements).find((name) => values?.constructor === elements[name]);
  if (!type || !Array.isArray(shape) || values.length !== countOf(shape))
    throw new InputError(values?.length === undefined ? typeof given : `${values.length} elements`, where, "{ values, shape } with a typed array of this shape, or { name, bytes } of an .npy file");
  return taken(core, "take_array", bytesOf(values, where), { type, shape });
}
function release(core, arrays) {
  for (const { handle } of Object.values(arrays)) core.whenIdle(() => core.call("free_array", { array: handle }));
}
/** `use` of the handles of named arrays, which end with it. */
export async function withArrays(core, named, where, use) {
  const arrays = {};
  try {
    for (const [name, given] of Object.entries(named)) arrays[name] = takeArray(core, given, `${where}, ${name}`);
    return await use(Object.fromEntries(Object.entries(arrays).map(([name, { handle }]) => [name, handle])));
  } finally {
    release(core, arrays);
  }
}
/** Arrays of an answer as { values, shape }; the core keeps them no longer. */
export async function readArrays(core, arrays) {
  try {
    const read = {};
    for (const [name, { handle, shape, type }] of Object.entries(arrays)) {
      const Elements = elements[type], size = countOf(shape) * Elements.BYTES_PER_ELEMENT;
      const bytes = size ? await core.callWaiting("read_array", { array: handle }, size) : new Uint8Array();
      read[name] = { values: new Elements(bytes.buffer), shape };
    }
    return read;
  } finally {
    release(core, arrays);
  }
}
