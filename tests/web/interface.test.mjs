// The core's calls with hostile requests, and memory over many launches.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before, test } from "node:test";
import { floats, heat } from "./kernels.mjs";
import { Grid, load, LockstepError, Out, site } from "./site.mjs";

let ls;
before(async () => {
  ls = await load({ print: () => {} });
});

test("memory is flat over 100,000 launches", async () => {
  const device = await ls.open("cpu"), kernel = heat(ls), size = [16, 16];
  const [from, to] = [device.array("f32", size, floats(256, 1)), device.array("f32", size)];
  const step = () => {
    device.launch(kernel, size, from, to, 0.1);
    device.array("f32", size).dispose();
  };
  for (let k = 0; k < 1000; ++k) step();
  const before = ls.usage();
  for (let k = 0; k < 100_000; ++k) step();
  const after = ls.usage();
  assert.deepEqual(after, before);
  assert.equal(device.counters().launches, 101_000);
  assert.equal(device.counters().kernels_compiled, 1);
});

test("kernels leave nothing behind", async () => {
  const device = await ls.open("cpu"), out = device.array("f32", 64);
  const once = (k) => {
    const kernel = ls.kernel({ out: Out("f32") }, (at, o) => o.store(at, k), { name: `k${k}` });
    device.launch(kernel, 64, out);
    kernel.dispose();
  };
  for (let k = 0; k < 200; ++k) once(k);
  const { memoryBytes, kernels } = ls.usage();
  for (let k = 200; k < 1000; ++k) once(k);
  assert.equal(ls.usage().kernels, kernels);
  assert.ok(ls.usage().memoryBytes - memoryBytes < 16 << 20, `${ls.usage().memoryBytes - memoryBytes} bytes more`);
});

test("forgotten buffers end with the garbage", { skip: globalThis.gc ? false : "node runs without --expose-gc" }, async () => {
  const alone = await load(), device = await alone.open("cpu");
  (() => { for (let k = 0; k < 100; ++k) device.array("f32", 10); })();
  const kept = device.array("f32", 10);
  assert.equal(alone.usage().buffers, 101);
  for (let k = 0; k < 50 && alone.usage().buffers > 1; ++k) {
    globalThis.gc();
    await new Promise((resume) => setTimeout(resume, 10));
  }
  assert.equal(alone.usage().buffers, 1);
  assert.equal((await kept.download()).length, 10);
});

/** SplitMix in 32 bits. */
function random(seed) {
  let state = seed;
  return (n) => {
    state = (state + 0x9e3779b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) % n;
  };
}
const calls = [
  "open", "close", "counters", "allocate", "free", "write", "read", "copy", "clear", "launch", "prepare", "reduce", "objects", "words",
  "trace", "source", "free_kernel", "cases", "apply", "select", "constant", "convert", "bitcast", "powi", "place", "group_reduce", "size",
  "load", "store", "atomic", "variable", "get", "set", "array", "array_load", "array_store", "open_block", "close_block", "close_if",
  "open_else", "open_for", "close_for", "close_loop", "effect", "digest", "verify", "take_array", "read_array", "free_array", "pde_loss",
  "pde_trajectory", "no such call",
];
const members = [
  "device", "buffer", "kernel", "names", "type", "shape", "address", "bytes", "arguments", "extent", "how", "result", "other", "from", "to",
  "name", "domain", "rank", "group", "contract", "parameters", "word", "operands", "condition", "value", "exponent", "what", "axis", "at",
  "boundary", "offsets", "op", "variable", "count", "shared", "array", "block", "closed", "bounds", "step", "begin", "end", "case", "size",
  "against", "line", "arrays", "options",
];
const texts = ["f32", "i32", "bool", "u8", "f16", "+", "<", "fma", "sum", "dot", "cpu", "interp", "points", "groups", "clamp", "zero", "break",
  "return", "barrier", "coord", "lane", "add", "f3ff0000000000000", "i7", "u18446744073709551615", "f7ff8000000000000", "i-3", "", "\ud800", "fzz"];
function anything(pick, depth = 0) {
  switch (pick(depth > 2 ? 7 : 9)) {
    case 0: return pick(40);  // perhaps a handle
    case 1: return [0, -1, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 53, 1e300, 0.5][pick(8)];
    case 2: case 3: case 4: return texts[pick(texts.length)];
    case 5: return [null, true, false][pick(3)];
    case 6: return pick(4);
    case 7: return Array.from({ length: pick(5) }, () => anything(pick, depth + 1));
    default: return Object.fromEntries(Array.from({ length: pick(4) }, () => [members[pick(members.length)], anything(pick, depth + 1)]));
  }
}
function hostile(pick) {
  const request = Object.fromEntries(members.filter(() => pick(3) > 0).map((name) => [name, anything(pick)]));
  for (const list of ["operands", "bounds", "at", "offsets", "shape", "extent", "group"])
    if (pick(2)) request[list] = Array.from({ length: 1 + pick(3) }, () => (pick(2) ? pick(40) : anything(pick, 2)));
  return [calls[pick(calls.length)], request];
}

test("hostile requests are answered, and the core works on", async () => {
  const tally = { answered: 0, refused: 0, traced: 0 };
  const ask = (call, request) => {
    try {
      ls.request(call, request);
      tally.answered++;
    } catch (error) {
      if (!(error instanceof LockstepError) || /the core stopped/.test(error.message)) throw new Error(`${call} ${JSON.stringify(request)}: ${error.stack}`);
      tally.refused++;
    }
  };
  for (let seed = 1; seed <= 40; ++seed) {
    const pick = random(seed);
    for (let k = 0; k < 250; ++k) {
      const [call, request] = hostile(pick);
      if (call !== "digest" && call !== "verify") ask(call, request);
    }
    // The same inside of a trace, where handles of this kernel exist.
    try {
      ls.kernel({ x: Grid("f32", 1 + pick(3)), out: Out("i32"), n: "i32" }, () => {
        for (let k = 0; k < 100; ++k) ask(...hostile(pick));
      }, pick(2) ? { group: [32] } : {});
      tally.traced++;
    } catch (error) {
      if (!(error instanceof LockstepError) || /the core stopped/.test(error.message)) throw error;
    }
  }
  assert.ok(tally.answered > 500 && tally.refused > 5000, JSON.stringify(tally));
  const device = await ls.open("cpu");
  assert.deepEqual(Array.from(await device.array("f32", 3, [1, 2, 3]).download()), [1, 2, 3]);
});

test("bytes that are no request are answered", async () => {
  const { wasiImports } = await import(new URL("lockstep/wasi.js", site));
  const module = await WebAssembly.compile(await readFile(new URL("lockstep/lockstep.wasm", site)));
  let core;
  const asked = WebAssembly.Module.imports(module).filter(({ module: from }) => from === "lockstep");
  const none = Object.fromEntries(asked.map(({ name }) => [name, () => 0]));
  const memory = new WebAssembly.Memory({ initial: 256, maximum: 65536 });
  const lockstep = { ...none, threads: () => 1 };
  core = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasiImports(module, () => memory, () => {}), lockstep, env: { memory } });
  const { exports } = core;
  exports._initialize();
  const answer = (bytes) => {
    const address = exports.lockstep_allocate(bytes.length + 1);
    new Uint8Array(exports.memory.buffer).set(bytes, address);
    const size = exports.lockstep_call(address, bytes.length), reply = exports.lockstep_reply();
    exports.lockstep_free(address);
    return JSON.parse(new TextDecoder().decode(new Uint8Array(exports.memory.buffer, reply, size)));
  };
  const pick = random(7), words = new TextEncoder().encode('{"call":"open","names":"cpu"}');
  for (let k = 0; k < 3000; ++k) {
    const bytes = pick(2) ? Uint8Array.from({ length: pick(60) }, () => pick(256)) : words.slice();
    for (let flips = pick(3); flips > 0 && bytes.length; --flips) bytes[pick(bytes.length)] = pick(256);
    const { result, error } = answer(bytes);
    assert.ok(result !== undefined || (error.what && error.kind), new TextDecoder().decode(bytes));
  }
  for (const text of ["[".repeat(100000), '{"call":"open","names":' + "[".repeat(50000), `"${"x".repeat(1 << 20)}"`, "1e999", "{}", ""])
    assert.equal(answer(new TextEncoder().encode(text)).error.kind, "input");
  assert.equal(answer(words).result.kind, "cpu");
});
