// The package as web/build made it, in the folder that WEB_SITE names.
import { pathToFileURL } from "node:url";
import { patience } from "./browser.mjs";

export const site = pathToFileURL(process.env.WEB_SITE + "/");
const lockstep = await import(new URL("lockstep/lockstep.js", site));
export const { load, Grid, Out, InOut, InputError, DeviceError, UnsupportedError, LockstepError } = lockstep;

/** Launches until workers took part: on a busy machine they may come too late for one launch. How many parts they ran. */
export async function untilWorkers(lockstep, launch) {
  for (const end = Date.now() + 1000 * patience; Date.now() < end; launch()) {
    const { byWorkers } = await lockstep.threads();
    if (byWorkers > 0) return byWorkers;
  }
  return 0;
}

/** An .npy file as NumPy writes it: `type` as its header has it, the elements of a typed array. */
export function npy(type, shape, values) {
  const header = Buffer.from(`{'descr': '${type}', 'fortran_order': False, 'shape': (${shape.join(", ")},), }`.padEnd(117) + "\n");
  const start = Buffer.concat([Buffer.from("\x93NUMPY\x01\x00", "latin1"), Buffer.from([header.length & 255, header.length >> 8])]);
  return new Uint8Array(Buffer.concat([start, header, Buffer.from(values.buffer, values.byteOffset, values.byteLength)]));
}
