// The browser's WebGPU as a device of the core, on Chromium's software adapter: cases, limits, losses, errors.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, serve, webgpu } from "./browser.mjs";
import { site } from "./site.mjs";

let with_gpu, without, server;
before(async () => {
  [with_gpu, without] = await Promise.all([Browser.start(process.env.WEB_BROWSER, webgpu), Browser.start(process.env.WEB_BROWSER)]);
  server = await serve(site, new Map([["/blank.html", "<!doctype html><link rel=icon href=icon.svg><title>blank</title>"]]));
});
after(async () => {
  await Promise.all([with_gpu.close(), without.close()]);
  server.close();
});

/** What a script gives that runs in a page with `lockstep`, `said` (its log lines), Grid, Out and helpers. */
async function inPage(script, browser = with_gpu) {
  const page = await browser.page();
  try {
    await page.open(`${server.origin}/blank.html`);
    await page.until("document.title === 'blank'");
    return JSON.parse(await page.evaluate(`(async () => {
      const { load, Grid, Out } = await import("./lockstep/lockstep.js");
      const said = [], lockstep = await load({ print: (line) => said.push(line) });
      const twice = () => lockstep.kernel({ x: Grid("f32"), y: Out("f32") }, (at, x, y) => { y.store(at, x.load(at).mul(2)); }, { name: "twice" });
      const errorOf = async (work) => { try { await work(); } catch (e) { return { name: e.constructor.name, message: e.message }; } return {}; };
      const ones = (device) => device.array("f32", 1000, new Float32Array(1000).fill(1));
      return JSON.stringify(await (async () => { ${script} })());
    })()`));
  } finally {
    await page.close();
  }
}

// WEB_FUNCTIONS=all: every elementary function, which takes the adapter's compiler minutes.
const functions = process.env.WEB_FUNCTIONS === "all" ? { "math.": null } : { "math.exp": ["1000"], "math.log": ["1000"] };

test("cases stay within their bounds, and most keep every bit", async (t) => {
  const rows = await inPage(`
    const device = await lockstep.open("webgpu"), rows = [];
    const some = { "engine.": undefined, ...${JSON.stringify(functions)}, "primitives.sum": ["1000"] };
    for (const [cases, sizes] of Object.entries(some)) rows.push(...await lockstep.verify(device, { cases, sizes: sizes ?? undefined }));
    return rows;`);
  const ran = rows.filter((row) => !row.skipped);
  assert.deepEqual(ran.filter((row) => !row.pass), []);
  assert.ok(ran.length > 100, `${ran.length} problems`);
  assert.ok(ran.filter((row) => row.bound === "bits" && row.elements > 0).every((row) => row.differing_bits === 0));
  assert.ok(rows.filter((row) => row.skipped).every((row) => /no f64|f64|64-bit/.test(row.skipped)), "only f64 is left out");
  t.diagnostic(`${ran.length} problems, ${ran.filter((row) => row.differing_bits === 0).length} with every bit`);
});

test("tiny limits split launches and bind buffers in windows", async () => {
  const rows = await inPage(`
    const limits = { group_lanes: 32, groups: 7, binding_bytes: 131072, bindings: 9 };
    const device = await lockstep.open("webgpu", { limits });
    const rows = await lockstep.verify(device, { cases: "engine.dispatch" });
    rows.push(...await lockstep.verify(device, { cases: "engine.axpy", sizes: ["65537"] }));
    const plain = await lockstep.open("webgpu");
    await lockstep.verify(plain, { cases: "engine.dispatch" });
    await lockstep.verify(plain, { cases: "engine.axpy", sizes: ["65537"] });
    const launches = [device, plain].map((d) => d.counters().launches);
    rows.push({ pass: device.info.limits.group_lanes === 32 && launches[0] > 2 * launches[1], launches });
    return rows;`);
  assert.deepEqual(rows.filter((row) => !row.pass), []);
});

test("numbers of every width go there and back", async () => {
  const ok = await inPage(`
    const device = await lockstep.open("webgpu"), all = [];
    for (const [type, Elements] of [["u8", Uint8Array], ["f16", Uint16Array], ["f32", Float32Array], ["u32", Uint32Array]])
      for (const count of [1, 2, 3, 5, 1001]) {
        const given = Elements.from({ length: count }, (_, k) => (k * 37 + 11) % 251), buffer = device.array(type, count, given);
        all.push([type, count, String(await buffer.download()) === String(given)]);
        buffer.dispose();
      }
    return all;`);
  assert.deepEqual(ok.filter(([, , equal]) => !equal), []);
});

test("a missing adapter is a reason, and the next device serves", async () => {
  const { info, said, alone } = await inPage(`
    const device = await lockstep.open("webgpu,cpu");
    return { info: device.info, said, alone: await errorOf(() => lockstep.open("webgpu")) };`, without);
  assert.equal(info.kind, "cpu");
  assert.equal(info.refused[0].name, "webgpu");
  assert.match(said.join("\n"), /^\[GPU\] webgpu failed: .*(adapter|WebGPU).*CPU fallback\.$/);
  assert.equal(alone.name, "UnsupportedError");
});

test("a device that is lost says so, and another can be opened", async () => {
  const { lost, later, again } = await inPage(`
    const request = GPUAdapter.prototype.requestDevice;
    let gpu;
    GPUAdapter.prototype.requestDevice = async function (...a) { return (gpu = await request.apply(this, a)); };
    const device = await lockstep.open("webgpu"), kernel = twice(), x = ones(device), y = device.array("f32", 1000);
    device.launch(kernel, 1000, x, y);
    await y.download();
    device.launch(kernel, 1000, y, x);
    gpu.destroy();
    const lost = await errorOf(() => x.download());
    const later = await errorOf(() => device.launch(kernel, 1000, x, y));
    const other = await lockstep.open("webgpu"), a = ones(other), b = other.array("f32", 1000);
    other.launch(kernel, 1000, a, b);
    return { lost, later, again: await other.sum(b) };`);
  assert.equal(lost.name, "DeviceError");
  assert.match(lost.message, /lost/);
  assert.equal(later.name, "DeviceError");
  assert.equal(again, 2000);
});

test("what the browser's compiler refuses is a DeviceError with the kernel's name", async () => {
  const { early, late } = await inPage(`
    const create = GPUDevice.prototype.createShaderModule;
    GPUDevice.prototype.createShaderModule = function (d) { return create.call(this, { ...d, code: d.code + "\\n}" }); };
    const device = await lockstep.open("webgpu"), x = ones(device), y = device.array("f32", 1000), kernel = twice();
    const early = await errorOf(() => device.prepare(kernel));
    const late = await errorOf(async () => { device.launch(twice(), 1000, x, y); await y.download(); });
    return { early, late };`);
  for (const error of [early, late]) {
    assert.equal(error.name, "DeviceError");
    assert.match(error.message, /twice|WGSL/);
  }
});

test("calls while the core waits are refused, and what is disposed ends afterwards", async () => {
  const { refused, values, buffers } = await inPage(`
    const device = await lockstep.open("webgpu"), kernel = twice(), x = ones(device), y = device.array("f32", 1000);
    device.launch(kernel, 1000, x, y);
    const reading = y.download();
    const refused = await errorOf(() => device.launch(kernel, 1000, y, x));
    x.dispose();
    const both = await Promise.all([reading, y.download()]);
    y.dispose();
    return { refused, values: both.map((all) => all[999]), buffers: lockstep.usage().buffers };`);
  assert.equal(refused.name, "InputError");
  assert.match(refused.message, /launch while the core waits/);
  assert.deepEqual(values, [2, 2]);
  assert.equal(buffers, 0);
});

test("L-BFGS compiles on the software adapter, and finds what the processor finds", async (t) => {
  const [gpu, cpu] = await inPage(`
    const text = "v 0 0 0\\nv 1 0 0\\nv 1 1 0\\nv 0 1 0\\nv 0.5 0.5 0.4\\nf 1 2 5\\nf 2 3 5\\nf 3 4 5\\nf 4 1 5\\n", all = [];
    for (const device of ["webgpu", "cpu"]) {
      const mesh = lockstep.mesh(new TextEncoder().encode(text), "pyramid.obj");
      const problem = await lockstep.meshProblem(mesh, { energy: "springs", device, fixed: [0, 1], handles: [4] });
      const start = performance.now(), { cost, iterations, fallbacks, device: name } = await problem.minimise({ targets: [0.5, 0.7, 0.6] });
      all.push({ cost, iterations, fallbacks, name, seconds: (performance.now() - start) / 1000 });
    }
    return all;`);
  assert.match(gpu.name, /swiftshader/i);
  assert.deepEqual(gpu.fallbacks, {});
  assert.ok(gpu.iterations > 3 && gpu.cost > 0 && Math.abs(gpu.cost - cpu.cost) <= 1e-4 * cpu.cost, `${gpu.cost} and ${cpu.cost}`);
  t.diagnostic(`${gpu.iterations} iterations, ${gpu.seconds.toFixed(1)} s with compiling`);
});

test("the page \"Equal bits?\" shows the table of a graphics processor, and why there is none", async () => {
  const verdict = "document.getElementById('verdict').textContent";
  for (const [browser, expected] of [[with_gpu, /^(Within the bounds|Equal): (\d+|every bit of \d+) problems/], [without, /adapter|WebGPU/]]) {
    const page = await browser.page();
    await page.open(`${server.origin}/equal.html?device=webgpu`);
    await page.until(`${verdict} === "Ready."`);
    await page.evaluate("{ const s = document.getElementById('cases'); s.value = 'engine.'; document.getElementById('run').click(); }");
    await page.until(`!/^Ready|problems …$/.test(${verdict})`);
    assert.match(await page.evaluate(verdict), expected);
    assert.deepEqual(page.errors.filter((error) => error !== "No available adapters."), []);  // Chromium's own words
    await page.close();
  }
});
