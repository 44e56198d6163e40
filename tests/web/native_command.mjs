// What a command of the native program says and writes, for comparisons with the page's.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { InputError, npy } from "./site.mjs";

/** Its JSON, digests of the arrays and the contents of the texts that it wrote, given arrays as in.npz and files by name. */
export async function native(command, { arrays = {}, files = {} } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "lockstep-native-"));
  try {
    for (const [name, { values, shape }] of Object.entries(arrays))
      await writeFile(join(folder, `${name}.npy`), npy(values instanceof Float64Array ? "<f8" : values instanceof Uint8Array ? "|u1" : "<f4", shape, values));
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
    return JSON.parse(execFileSync(process.env.WEB_PYTHON ?? "python3", ["-B", fileURLToPath(new URL("native_run.py", import.meta.url)), folder, ...command], { encoding: "utf8" }));
  } finally {
    await rm(folder, { recursive: true });
  }
}
export const digestOf = (values) => createHash("sha256").update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength)).digest("hex");
export const digests = (arrays) => Object.fromEntries(Object.entries(arrays).map(([name, { values }]) => [name, digestOf(values)]));
/** The members that the page's answer has, but for those of the page alone. */
export const members = (answer, document) => Object.fromEntries(Object.keys(answer).map((name) => [name, document[name]]));
export const refused = (work, expected) => assert.rejects(work, (error) => error instanceof InputError && expected.test(error.message));
