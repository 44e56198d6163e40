// Turbulence through lockstep.js under node: the native program's bits, and what is known of a push.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { InputError, load, npy } from "./site.mjs";

const digest = async (flow) => createHash("sha256").update(new Uint8Array((await flow.vorticity()).buffer)).digest("hex");
const forced = { device: "cpu", nx: 64, ny: 64, viscosity: 1e-4, closure: "smagorinsky", cfl: 0.8, drag: 0.05, forcing: "stochastic", forcing_wavenumber: 8,
  forcing_amount: 0.01, seed: 7 };

test("a seed and so many steps give the bits of the native program, also after a change of settings", async () => {
  const native = JSON.parse(execFileSync(process.env.WEB_PYTHON ?? "python3", ["-B", fileURLToPath(new URL("native_flow.py", import.meta.url))], { encoding: "utf8" }));
  const ls = await load(), flow = await ls.flow(forced);
  for (const steps of [0, 3, 10, 12]) await flow.advance(steps);
  const { time, steps } = await flow.advance(0);
  assert.deepEqual([steps, time], [25, native.time]);
  assert.equal(await digest(flow), native.random);
  await flow.change({ viscosity: 1e-2 });
  await flow.advance(5);
  assert.equal(await digest(flow), native.changed);
  const another = await ls.flow({ ...forced, forcing_seed: 9 });
  await another.advance(10);
  assert.equal(await digest(another), native["another forcing"]);
  const shear = await ls.flow({ device: "cpu", ny: 48, nx: 96, viscosity: 1e-3, closure: "leith", dt: 5e-3, integrator: "etdrk4", forcing: "kolmogorov",
    forcing_wavenumber: 4, forcing_amount: 0.2, initial: "shear" });
  await shear.advance(25);
  assert.deepEqual(shear.shape, [48, 96]);
  assert.equal(await digest(shear), native.shear);
});

test("a push on fluid at rest has its momentum and nothing else", async () => {
  const n = 96, ls = await load(), still = npy("<f4", [n, n], new Float32Array(n * n));
  for (const [dx, dy] of [[0.7, 0], [0, -0.4]]) {
    const flow = await ls.flow({ device: "cpu", viscosity: 0, dt: 1e-3, field: { name: "still.npy", bytes: still } });
    const state = await flow.advance(0, [[0.5, 0.25, dx, dy]]), w = await flow.vorticity();
    // A velocity d exp(-r^2 / 2 s^2) with s of 0.03 boxes holds the momentum 2 pi s^2 d: the first moments of its vorticity.
    const side = 2 * Math.PI, s = 0.03 * side, cell = (side / n) ** 2;
    let [mx, my, sum] = [0, 0, 0];
    w.forEach((value, k) => {
      const x = ((k % n) / n - 0.5) * side, y = (Math.floor(k / n) / n - 0.25) * side;
      [mx, my, sum] = [mx + value * y * cell, my - value * x * cell, sum + value * cell];
    });
    const momentum = 2 * Math.PI * s * s;
    for (const [found, expected] of [[mx, momentum * dx], [my, momentum * dy], [sum, 0]]) assert.ok(Math.abs(found - expected) < 1e-4, `${found} near ${expected}`);
    assert.ok(state.energy > 0 && state.steps === 0);
    const spectrum = await flow.spectrum();
    assert.ok(Math.abs(spectrum.reduce((all, e) => all + e, 0) - state.energy) < 1e-6 * state.energy, "the spectrum holds the energy");
  }
});

test("pushes leave the clock and the steps as they are", async () => {
  const ls = await load(), flow = await ls.flow(forced);
  const before = await flow.advance(7), after = await flow.advance(0, [[0.1, 0.9, 1, 1], [0.99, 0.01, -2, 0]]);
  assert.deepEqual([after.time, after.steps], [before.time, 7]);
  assert.ok(after.energy !== before.energy);
  assert.equal((await flow.advance(2)).steps, 9);
});

test("advances and spectra after the first compile nothing and leave nothing behind", async () => {
  const ls = await load(), flow = await ls.flow({ device: "cpu", nx: 16, ny: 16, viscosity: 1e-3, dt: 0.01 }), { Instance } = WebAssembly;
  for (let k = 0; k < 12; ++k) await flow.advance(1), await flow.vorticity(), await flow.spectrum();
  let made = 0;
  WebAssembly.Instance = function (...given) {
    ++made;
    return new Instance(...given);
  };
  try {
    const { memoryBytes } = ls.usage();
    for (let k = 0; k < 300; ++k) await flow.advance(1), await flow.vorticity(), await flow.spectrum();
    assert.equal(made, 0, "modules of kernels");
    assert.equal(ls.usage().memoryBytes, memoryBytes);
  } finally {
    WebAssembly.Instance = Instance;
  }
});

test("what makes no sense is refused, and the flow goes on", async () => {
  const ls = await load(), flow = await ls.flow(forced);
  const refused = (work, expected) => assert.rejects(work, (error) => error instanceof InputError && expected.test(error.message));
  await refused(flow.change({ viscosity: -1 }), /viscosity.*at least 0/);
  await refused(flow.change({ viscositi: 1 }), /viscositi/);
  await refused(flow.change({ dt: 50, cfl: null }), /unstable/);
  await refused(flow.change({ nx: 32 }), /another grid/);
  await refused(flow.change({ closure: ["leith"] }), /closure/);
  await refused(flow.advance(-1), /steps/);
  await refused(flow.advance(1, [[0, 0, 0]]), /stroke/);
  await refused(flow.advance(1, [[0, 0, NaN, 0]]), /stroke/);
  await refused(ls.flow({ ...forced, nx: 4096, ny: 4096 }), /2048/);
  await refused(ls.flow({ ...forced, field: { name: "a.npy", bytes: new Uint8Array(9) } }), /a\.npy/);
  await refused(ls.flow({ device: "cpu", field: { name: "b.npy", bytes: npy("<f4", [8, 8], new Float32Array(64).fill(NaN)) } }), /finite/);
  await refused(ls.flow({ ...forced, field: { name: "c.npy", bytes: npy("<f4", [64], new Float32Array(64)) } }), /shape/);
  await refused(ls.flow({ ...forced, field: { name: "d.npy", bytes: "text" } }), /bytes/);
  // A push that no step survives: the flow is the one before.
  const fixed = await ls.flow({ device: "cpu", nx: 64, ny: 64, dt: 0.01 }), { energy } = await fixed.advance(1);
  await refused(fixed.advance(50, Array(100).fill([0.5, 0.5, 100, 0])), /blew up/);
  assert.equal((await fixed.advance(0)).energy, energy);
  flow.dispose();
  await refused(flow.advance(1), /flow/);
});
