// The package as web/build made it, in the folder that WEB_SITE names.
import { pathToFileURL } from "node:url";

export const site = pathToFileURL(process.env.WEB_SITE + "/");
const lockstep = await import(new URL("lockstep/lockstep.js", site));
export const { load, Grid, Out, InOut, InputError, DeviceError, UnsupportedError, LockstepError } = lockstep;

/** An .npy file as NumPy writes it: `type` as its header has it, the elements of a typed array. */
export function npy(type, shape, values) {
  const header = Buffer.from(`{'descr': '${type}', 'fortran_order': False, 'shape': (${shape.join(", ")},), }`.padEnd(117) + "\n");
  const start = Buffer.concat([Buffer.from("\x93NUMPY\x01\x00", "latin1"), Buffer.from([header.length & 255, header.length >> 8])]);
  return new Uint8Array(Buffer.concat([start, header, Buffer.from(values.buffer, values.byteOffset, values.byteLength)]));
}
