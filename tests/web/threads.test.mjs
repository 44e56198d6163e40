// Threads change no bit: cases, kernels and fma of hostile numbers on 1 to 4 threads.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { InputError, Grid, load, Out, site, untilWorkers } from "./site.mjs";

const { fma } = await import(new URL("lockstep/fma.js", site));
const { withSharedMemory } = await import(new URL("lockstep/threads.js", site));
const bytes = await readFile(new URL("lockstep/lockstep.wasm", site));
// Small ones, which the native program left digests of, and some that are large enough for threads.
const cases = [["engine."], ["primitives.sum"], ["engine.heat", "64x64x64"], ["engine.heat_f64", "37x41x43"], ["engine.storage", "65536"],
  ["math.pow", "65536"], ["primitives.matmul", "128x128x128"]];

/** Doubles whose exponents span all of them, with zeros, infinities, NaN and subnormal numbers among them. */
function hostile(count, seed) {
  const words = new BigUint64Array(count);
  let state = BigInt(seed);
  for (let k = 0; k < count; ++k) {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    words[k] = state ^ (state >> 29n);
    if (k % 13 === 0) words[k] &= 0x800fffffffffffffn;
    if (k % 17 === 0) words[k] &= 0xfff0000000000000n;
  }
  return new Float64Array(words.buffer);
}
const n = 40000, abc = [hostile(n, 1), hostile(n, 2), hostile(n, 3)];
for (let k = 0; k < n; k += 3) abc[2][k] = -abc[0][k] * abc[1][k];  // sums that cancel

async function everything(threads, options) {
  const said = [], ls = await load({ threads, wasm: bytes, print: (line) => said.push(line), ...options });
  const ready = await ls.threads();
  const device = await ls.open("cpu"), all = [];
  for (const [prefix, size] of cases) all.push(...await ls.digests(device, { cases: prefix, sizes: size && [size] }));
  const kernel = ls.kernel({ a: Grid("f64"), b: Grid("f64"), c: Grid("f64"), out: Out("f64") },
    (at, a, b, c, out) => {
      const v = ls.var(c.load(at));
      ls.for(40, () => v.set(ls.fma(a.load(at), b.load(at), c.load(at))));  // long enough for threads
      out.store(at, v.get());
    });
  const out = device.array("f64", n), given = abc.map((values) => device.array("f64", n, values));
  const launch = () => device.launch(kernel, n, ...given, out);
  launch();
  const byWorkers = threads > 1 ? await untilWorkers(ls, launch) : (await ls.threads()).byWorkers;
  const sums = await out.download();
  ls.close();
  assert.deepEqual(said, []);
  return { ready, all: all.filter((row) => row.digest), sums, byWorkers, info: device.info };
}
const bits = (x) => (Number.isNaN(x) ? "NaN" : new BigUint64Array(Float64Array.of(x).buffer)[0].toString(16));

test("1 to 4 threads, with the engine's fma and without", async (t) => {
  const one = await everything(1), stored = JSON.parse(await readFile(new URL("digests.json", site), "utf8"))[0].digests;
  assert.equal(one.byWorkers, 0);
  assert.ok(one.all.length > 40, `${one.all.length} problems`);
  assert.deepEqual(one.all.filter((row) => (stored[`${row.case} ${row.size}`] ?? row.digest) !== row.digest), []);
  for (const options of [{}, { fused: false }])
    for (const threads of [2, 3, 4]) {
      const many = await everything(threads, options);
      assert.equal(many.ready.count, threads);
      assert.match(many.info.description, new RegExp(`${threads} threads`));
      assert.deepEqual(many.all, one.all);
      assert.deepEqual(Array.from(many.sums, bits), Array.from(one.sums, bits));
      assert.ok(many.byWorkers > 0, "workers took part");
      t.diagnostic(`${threads} threads: ${many.byWorkers} parts by workers`);
    }
  for (let k = 0; k < n; ++k) assert.equal(bits(fma(abc[0][k], abc[1][k], abc[2][k])), bits(one.sums[k]), `${abc.map((x) => x[k])}`);
});

test("threads that are none, and a core that workers cannot share", async () => {
  for (const threads of [0, 65, 1.5, "2", null]) await assert.rejects(load({ threads }), InputError);
  const ls = await load({ wasm: await WebAssembly.compile(bytes), threads: 2 });
  assert.deepEqual(await ls.threads(), { count: 1, reason: "the core was given as a compiled module", byWorkers: 0 });
  assert.throws(() => withSharedMemory(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)), TypeError);
});

test("a core that was closed takes no more calls", async () => {
  const ls = await load({ threads: 2 });
  ls.close();
  assert.throws(() => ls.cases(), /close/);
});
