// Kernels traced from JavaScript give the bits of the native CPU device, on both devices of the page.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { count, floats, problems } from "./kernels.mjs";
import { load, site } from "./site.mjs";

let ls, native;
before(async () => {
  ls = await load();
  const script = fileURLToPath(new URL("native_kernels.py", import.meta.url));
  native = JSON.parse(execFileSync(process.env.WEB_PYTHON ?? "python3", ["-B", script], { encoding: "utf8" }));
});

for (const name of ["cpu", "interp"])
  test(`kernels on ${name}`, async () => {
    const device = await ls.open(name);
    for (const [kernelName, [kernel, extent, buffers, numbers]] of Object.entries(problems(ls))) {
      const arrays = buffers.map((buffer) => device.array(...buffer));
      device.launch(kernel, extent, ...arrays, ...numbers);
      const result = await arrays.at(-1).download();
      assert.ok(result.some((value) => value !== 0), `${kernelName} wrote something`);
      assert.equal(createHash("sha256").update(new Uint8Array(result.buffer)).digest("hex"), native[kernelName], `${kernelName} on ${name}`);
      for (const array of arrays) array.dispose();
    }
  });

test("arguments by name, numbers of any kind, windows of rank 3", async () => {
  const device = await ls.open("cpu");
  const { Grid, Out } = await import("./site.mjs");
  const scale = ls.kernel({ x: Grid("f32", 3), out: Out("f32", 3), a: "f32", n: "i64", on: "bool" }, (at, x, out, a, n, on) => {
    out.store(at, on.select(x.load(at).mul(a).add(n.cast("f32")), 0));
  });
  const x = device.array("f32", [2, 3, 4], Float32Array.from({ length: 24 }, (_, k) => k)), out = device.array("f32", [2, 3, 4]);
  device.launch(scale, [2, 3, 4], { on: true, n: 5n, a: 0.5, out, x });
  assert.deepEqual(Array.from(await out.download()), Array.from({ length: 24 }, (_, k) => k * 0.5 + 5));
});

test("reductions have the tree of the primitives", async () => {
  const device = await ls.open("cpu"), interp = await ls.open("interp");
  const [x, y] = [floats(count, 3), floats(count, 4)];
  for (const how of ["sum", "min", "max", "norm"])
    assert.equal(await device[how](device.array("f32", [count], x)), await interp[how](interp.array("f32", [count], x)), how);
  assert.equal(await device.min(device.array("f32", [count], x)), Math.min(...x));
  const exact = x.reduce((sum, value, k) => sum + value * y[k], 0);
  const dot = await device.dot(device.array("f32", [count], x), device.array("f32", [count], y));
  assert.ok(Math.abs(dot - exact) < 1e-4, `${dot} is near ${exact}`);
  assert.equal(await device.sum(device.array("u32", [3], [4294967295, 1, 7])), 7);  // wraps
});

test("verify", async () => {
  const device = await ls.open("cpu"), seen = [];
  const rows = await ls.verify(device, { cases: "engine.copy", onRow: (row) => seen.push(row.case) });
  assert.ok(rows.length > 0 && rows.every((row) => row.pass || row.skipped));
  assert.ok(rows.some((row) => row.pass && row.elements > 0 && row.differing_bits === 0 && row.bound === "bits"));
  assert.equal(seen.length, rows.length);
  await assert.rejects(ls.verify(device, { cases: "no such case" }), /no such case/);
});

test("digests are those of the native program", async (t) => {
  const stored = JSON.parse(await readFile(new URL("digests.json", site), "utf8"));
  const device = await ls.open("cpu");
  const rows = (await ls.digests(device)).filter((row) => row.digest);
  assert.ok(rows.length > 100, `${rows.length} problems`);
  for (const [k, { device: name, digests }] of stored.entries()) {
    const known = rows.filter((row) => digests[`${row.case} ${row.size}`] !== undefined);
    const different = known.filter((row) => digests[`${row.case} ${row.size}`] !== row.digest);
    assert.deepEqual(different, [], `${name}: web_digests DEVICE writes web/digests anew where cases changed`);
    // This machine's are of this build; those of others may be older than a case.
    if (k === 0) assert.equal(known.length, rows.length);
    else assert.ok(known.length > 100, `${name}: ${known.length} problems`);
    t.diagnostic(`${name}: ${known.length} of ${rows.length} problems equal`);
  }
});
