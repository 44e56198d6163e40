// The package as web/build made it, in the folder that WEB_SITE names.
import { pathToFileURL } from "node:url";
import { crc32, deflateRawSync } from "node:zlib";
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

/** An .npz archive of .npy files, deflated as numpy.savez_compressed does it. */
export function npz(arrays, level = 6) {
  const parts = [], directory = [];
  let at = 0;
  for (const [name, content] of Object.entries(arrays)) {
    const packed = deflateRawSync(content, { level }), file = Buffer.from(`${name}.npy`), head = Buffer.alloc(26);
    head.writeUInt16LE(20, 0);
    head.writeUInt16LE(8, 4);
    head.writeUInt32LE(crc32(content), 10);
    head.writeUInt32LE(packed.length, 14);
    head.writeUInt32LE(content.length, 18);
    head.writeUInt16LE(file.length, 22);
    parts.push(Buffer.from("PK\x03\x04", "latin1"), head, file, packed);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(at, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\x00", "latin1"), head, place, file);
    at += 30 + file.length + packed.length;
  }
  const end = Buffer.alloc(18), index = Buffer.concat(directory), count = Object.keys(arrays).length;
  end.writeUInt16LE(count, 4);
  end.writeUInt16LE(count, 6);
  end.writeUInt32LE(index.length, 8);
  end.writeUInt32LE(at, 12);
  return new Uint8Array(Buffer.concat([...parts, index, Buffer.from("PK\x05\x06", "latin1"), end]));
}
