// lockstep.pde and lockstep.forecast under node: the native program's numbers for the same options, and refusals.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { digests, members, native, refused } from "./native_command.mjs";
import { load } from "./site.mjs";

let ls;
before(async () => {
  ls = await load();
});

/** Smooth fields with all frequencies, of a type. */
function field(Elements, shape, phase) {
  const count = shape.reduce((product, size) => product * size, 1);
  return { shape, values: Elements.from({ length: count }, (_, k) => Math.sin(phase + 0.37 * k) + 0.25 * Math.cos(phase * k)) };
}
function levels(Elements, [nz, ny, nx]) {
  const given = {};
  for (const level of [0, 1, 2]) Object.assign(given, { [`sigma${level}`]: field(Elements, [nz, ny, nx], 1 + level), [`u${level}`]: field(Elements, [3, nz, ny, nx], 5 + level) });
  return given;
}
async function comparedLoss(call, arrays, options, flags) {
  const { gradients, residuals, device, fallbacks, notes, ...answer } = await ls.pde[call](arrays, { ...options, device: "cpu" });
  const { document, arrays: written } = await native(["pde", call, "in.npz", ...flags, "--out", "gradients.npz"], { arrays });
  assert.deepEqual(answer, members(answer, document));
  assert.deepEqual(digests({ ...gradients, ...residuals }), written);
  assert.deepEqual([fallbacks, notes], [{}, []]);
  return { ...answer, gradients, residuals };
}

test("a loss, its gradients and residuals are those of the native program", async () => {
  const arrays = levels(Float32Array, [5, 6, 17]);
  arrays.mask = { shape: [5, 6, 17], values: field(Float32Array, [5, 6, 17], 2).values.map(Math.abs) };
  const { gradients, residuals } = await comparedLoss("loss", arrays,
    { spacing: [0.5, 1, 2], dt: 0.1, boundary: "x=clamp,y=no_slip", terms: "all,upwind,viscosity:0.1", weight_u: 3, residuals: true },
    ["--spacing", "0.5,1,2", "--dt", "0.1", "--boundary", "x=clamp,y=no_slip", "--terms", "all,upwind,viscosity:0.1", "--weights", "1,3", "--residuals", "residuals.npz"]);
  assert.deepEqual([gradients.d_u2.shape, residuals.r_u.shape], [[3, 5, 6, 17], [3, 5, 6, 17]]);
  assert.ok(gradients.d_sigma0.values instanceof Float32Array);
});

test("values of boundaries are numbers, profiles and parameters", async () => {
  const arrays = { ...levels(Float64Array, [5, 6, 8]), lid: field(Float64Array, [5, 8], 3) };
  const boundary = "y=clamp", ux = "y-=dirichlet_face:@floor,y+=dirichlet_face:@lid";
  const { by_number, gradients } = await comparedLoss("loss", arrays, { spacing: "1,1,1", dt: 1, boundary, boundary_ux: ux, parameters: { floor: 0.5 }, order: 4 },
    ["--spacing", "1,1,1", "--dt", "1", "--boundary", boundary, "--boundary-ux", ux, "--parameters", "floor=0.5", "--order", "4"]);
  assert.ok(Number.isFinite(by_number.floor));
  assert.deepEqual(gradients.d_lid.shape, [5, 8]);
});

test("so are those of a trajectory", () =>
  comparedLoss("trajectory", { sigma: field(Float32Array, [5, 5, 6, 8], 1), u: field(Float32Array, [5, 3, 5, 6, 8], 2) }, { spacing: [1, 1, 1], dt: 0.5, boundary: "clamp" },
    ["--spacing", "1,1,1", "--dt", "0.5", "--boundary", "clamp"]));

test("a shipped equation is solved to the native program's fields", async () => {
  assert.ok(ls.pde.examples().includes("burgers"));
  const { fields, device, fallbacks, notes, ...answer } = await ls.pde.example("cavity", { device: "cpu", cells: 8, windows: 1, iterations: 30, parameters: { lid: 0.5 } });
  const { document, arrays } = await native(["pde", "example", "cavity", "--cells", "8", "--windows", "1", "--iterations", "30", "--parameters", "lid=0.5", "--out", "out"]);
  assert.deepEqual(answer, members(answer, document));
  assert.deepEqual(digests(fields), arrays);
  assert.ok(fields.u.values instanceof Float64Array);
  // Fields that begin with sines of the C library have its rounding.
  const burgers = await ls.pde.example("burgers", { device: "cpu", cells: 8, windows: 1 });
  const { document: there } = await native(["pde", "example", "burgers", "--cells", "8", "--windows", "1", "--out", "out"]);
  assert.ok(burgers.converged && Math.abs(burgers.loss_start[0] / there.loss_start[0] - 1) < 1e-12, `${burgers.loss_start} near ${there.loss_start}`);
});

test("a check of derivatives has the native program's rows", async () => {
  const arrays = levels(Float64Array, [5, 6, 7]), options = { spacing: [0.5, 1, 2], dt: 0.1, boundary: "x=clamp,y=no_slip" };
  const { checks, passed } = await ls.pde.check(arrays, { ...options, seed: 4, device: "cpu" });
  const { document } = await native(["pde", "check", "in.npz", "--spacing", "0.5,1,2", "--dt", "0.1", "--boundary", "x=clamp,y=no_slip", "--seed", "4"], { arrays });
  assert.ok(passed && checks.length > 4);
  assert.deepEqual(checks, document.checks);
});

test("studies have rows for each combination, and residuals of exact solutions the native program's numbers", async () => {
  const { results, files } = await ls.pde.study({ device: "cpu", sizes: [6], boundaries: "periodic;clamp", kernels: ["two-kernel"], orders: [2, 4], iterations: 2, csv: "study.csv" });
  assert.deepEqual(results.map(({ size, boundary, order, skipped }) => [size, boundary, order, skipped]),
    [["6x6x6", "periodic", 2, ""], ["6x6x6", "periodic", 4, ""], ["6x6x6", "clamp", 2, ""], ["6x6x6", "clamp", 4, ""]]);
  assert.equal(new TextDecoder().decode(files["study.csv"]).trim().split("\n").length, 5);
  const page = await ls.pde.convergence({ device: "cpu", sizes: [10, 12], csv: "convergence.csv" });
  const { document } = await native(["pde", "convergence", "--sizes", "10,12", "--csv", "convergence.csv"]);
  // The solutions are functions of the C library.
  page.results.forEach(({ residual, ...row }, k) => {
    const { residual: there, ...same } = document.results[k];
    assert.deepEqual(row, same);
    assert.ok(Math.abs(residual / there - 1) < 1e-9, `${residual} near ${there}`);
  });
  await refused(ls.pde.convergence({ device: "cpu", sizes: [4] }), /sizes.*10/);
  await refused(ls.pde.convergence({ device: "cpu", out: "a.svg" }), /option out.*pictures/);
});

test("what no loss can be is refused in the page's words", async () => {
  const arrays = levels(Float32Array, [5, 6, 8]), options = { spacing: [1, 1, 1], dt: 1, device: "cpu" };
  await refused(ls.pde.loss(arrays, { device: "cpu", dt: 1 }), /spacing/);
  await refused(ls.pde.loss(arrays, { ...options, spacing: [1, 1] }), /2 numbers.*3/);
  await refused(ls.pde.loss(arrays, { ...options, boundary: "x=wall" }), /wall/);
  await refused(ls.pde.loss(arrays, { ...options, order: [2] }), /order/);
  await refused(ls.pde.loss(arrays, { ...options, out: "gradients.npz" }), /option out.*no files/);
  await refused(ls.pde.loss({ ...arrays, u1: field(Float32Array, [3, 5, 6, 7], 1) }, options), /u1/);
  await refused(ls.pde.loss({ ...arrays, u1: { values: [1], shape: [1] } }, options), /u1.*typed array/);
  await refused(ls.pde.loss({ ...arrays, u1: { values: new Float32Array(3), shape: [4] } }, options), /3 elements/);
  await refused(ls.pde.trajectory(arrays, options), /sigma/);
  await refused(ls.pde.example("soup", { device: "cpu" }), /soup.*heat/);
  await refused(ls.pde.example("heat", { device: "cpu", parameters: { mu: 1 } }), /mu/);
  await assert.rejects(ls.pde.loss(arrays, { ...options, device: "cuda" }), /cuda/);
});

/** A loss that falls, with noise, and other signals. */
const columns = { step: [], loss: [], lr: [], grad_norm: [] };
for (let k = 0; k < 60; ++k) {
  columns.step.push(10 * k);
  columns.loss.push(0.3 + 2 / (1 + 0.1 * k) * (1 + 0.02 * Math.sin(7 * k)));
  columns.lr.push(1e-3 * (1 - k / 100));
  columns.grad_norm.push(1 / (1 + k));
}
const names = Object.keys(columns), csv = [names.join(), ...columns.step.map((_, k) => names.map((name) => columns[name][k]).join())].join("\n");
const withoutPage = ({ device, fallbacks, notes, ...answer }) => answer;

test("rollouts of random weights are those of the native program", async () => {
  for (const [options, flags] of [[{}, []], [{ heads: "two-hot", batch: 3 }, ["--heads", "two-hot", "--batch", "3"]], [{ gru: "reset-after", precision: "f64" }, ["--gru", "reset-after", "--precision", "f64"]]]) {
    const { path, no_cluster, state_place, ...answer } = withoutPage(await ls.forecast.rollout(null, { device: "cpu", hidden: 40, members: 3, features: 20, steps: 12, seed: 5, ...options }));
    const { document } = await native(["forecast", "rollout", "--hidden", "40", "--members", "3", "--features", "20", "--steps", "12", "--seed", "5", ...flags]);
    assert.deepEqual(answer, members(answer, document));
    assert.equal(answer.trajectory?.length ?? answer.forecasts[0].trajectory.length, 12);
  }
});

test("an ensemble observes a log as the native program's does, and its weights forecast", async () => {
  const options = { device: "cpu", hidden: 24, members: 2, seed: 3, window: 4 };
  const { model, error, last_value_error, ...answer } = withoutPage(await ls.forecast.observe({ name: "log.csv", bytes: new TextEncoder().encode(csv) }, options));
  const { document, arrays } = await native(["forecast", "observe", "log.csv", "--hidden", "24", "--members", "2", "--seed", "3", "--window", "4", "--out", "model.npz"], { files: { "log.csv": csv } });
  assert.deepEqual(answer, members(answer, document));
  assert.deepEqual(digests(model), arrays);
  assert.ok(Math.abs(error - document.error) < 1e-12 && Math.abs(last_value_error - document.last_value_error) < 1e-12);
  // Columns of a page are the same log, and the weights go on from there.
  assert.deepEqual(digests((await ls.forecast.observe(columns, options)).model), arrays);
  assert.equal((await ls.forecast.observe(columns, { device: "cpu", model })).predictions.length, 59);
  const ahead = await ls.forecast.rollout(model, { device: "cpu", steps: 20 }), there = await native(["forecast", "rollout", "in.npz", "--steps", "20"], { arrays: model });
  assert.deepEqual([ahead.trajectory, ahead.sigma], [there.document.trajectory, there.document.sigma]);
});

test("a learning curve goes on as the native program says", async () => {
  const answer = await ls.forecast.curve({ name: "log.csv", bytes: new TextEncoder().encode(csv) }, { horizon: 2000, points: 5, target: 0.35 });
  const { document } = await native(["forecast", "curve", "log.csv", "--horizon", "2000", "--points", "5", "--target", "0.35"], { files: { "log.csv": csv } });
  assert.deepEqual([answer.column, answer.rows, answer.advice.action], ["loss", 60, document.advice.action]);
  answer.prediction.forEach(({ step, mean, low, high }, k) => {
    const there = document.prediction[k];
    assert.equal(step, there.step);
    for (const [found, expected] of [[mean, there.mean], [low, there.low], [high, there.high]]) assert.ok(Math.abs(found - expected) < 1e-6 * expected, `${found} near ${expected}`);
  });
});

test("what is no log, model or option of a forecast is refused in the page's words", async () => {
  const log = (name, text) => ({ name, bytes: new TextEncoder().encode(text) });
  await refused(ls.forecast.curve(log("log.csv", "step,loss\n1,x\n"), {}), /log\.csv/);
  await refused(ls.forecast.curve(log("log.png", csv), {}), /log\.png/);
  await refused(ls.forecast.curve(log("log.csv", csv), { horizon: 1 }), /horizon/);
  await refused(ls.forecast.curve(log("log.csv", csv), { column: "accuracy" }), /accuracy.*grad_norm/);
  await refused(ls.forecast.curve({}, {}), /columns\.csv/);
  await refused(ls.forecast.rollout(null, { device: "cpu", hidden_units: 4 }), /hidden_units/);
  await refused(ls.forecast.rollout(null, { device: "cpu", plot: "a.png" }), /plot.*no files/);
  await refused(ls.forecast.rollout({ W_q: field(Float32Array, [1], 0) }, { device: "cpu" }), /W_q/);
  await refused(ls.forecast.rollout({ W_z: field(Float32Array, [1, 2, 3], 0) }, { device: "cpu" }), /U_z/);
  const { model } = await ls.forecast.observe(columns, { device: "cpu", hidden: 4, members: 1 });
  await refused(ls.forecast.rollout(model, { device: "cpu", hidden: 4 }), /random weights.*hidden/);
  await refused(ls.forecast.observe(columns, { device: "cpu", model, members: 2 }), /random weights.*members/);
});

test("calls leave no array behind", async () => {
  const { arrays } = ls.usage(), given = levels(Float32Array, [5, 6, 8]);
  await ls.pde.loss(given, { spacing: [1, 1, 1], dt: 1, device: "cpu" });
  await assert.rejects(ls.pde.loss(given, { spacing: [1, 1, 1], device: "cpu" }));
  await ls.forecast.observe(columns, { device: "cpu", hidden: 4, members: 1 });
  assert.deepEqual([arrays, ls.usage().arrays], [0, 0]);
});
