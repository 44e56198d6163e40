// The blocks of docs/web.md run under node as printed, on the files and functions that the page takes as given.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before, test } from "node:test";
import { Grid, load, npy, npz, Out } from "./site.mjs";

const tree = new URL("../../", import.meta.url);
const AsyncFunction = (async () => {}).constructor;
const bytesOf = (text) => new TextEncoder().encode(text);
const file = (name, bytes) => ({ name, arrayBuffer: async () => bytes, text: async () => new TextDecoder().decode(bytes) });
const used = new Set();
let blocks, ls;
before(async () => {
  const page = await readFile(new URL("docs/web.md", tree), "utf8");
  blocks = [...page.matchAll(/^```(html|js)\n(.*?)^```$/gms)].map(([, , body]) => body.replace(/<\/?script[^>]*>|^import .*$/gm, ""));
  ls = await load({ print: () => {} });
});

/** Runs the block with that text; the values of the names that it defines. */
async function run(text, given, names) {
  const index = blocks.findIndex((body) => body.includes(text));
  assert.ok(index >= 0, `docs/web.md has no block with ${text}`);
  used.add(index);
  return new AsyncFunction(...Object.keys(given), `${blocks[index]}\nreturn { ${names} };`)(...Object.values(given));
}

test("the page to embed", async () => {
  const printed = [];
  await run("lockstep.kernel(", { load: async () => ls, Grid, Out, console: { log: (...values) => printed.push(values) } }, "");
  assert.deepEqual(printed, [[new Float32Array(48 * 64).fill(1), 48 * 64]]);
});

test("a mesh", async () => {
  const side = 8, lines = [];
  for (let r = 0; r < side; ++r) for (let c = 0; c < side; ++c) lines.push(`v ${r / side} ${c / side} ${((r * c) % 3) / side}`);
  for (let r = 0; r + 1 < side; ++r)
    for (let c = 0; c + 1 < side; ++c) {
      const at = r * side + c + 1;
      lines.push(`f ${at} ${at + 1} ${at + side + 1}`, `f ${at} ${at + side + 1} ${at + side}`);
    }
  const drawn = [], given = { lockstep: ls, file: file("grid.obj", bytesOf(lines.join("\n") + "\n")), draw: (positions) => drawn.push(positions.length) };
  const { result } = await run("lockstep.meshProblem", given, "result");
  assert.ok(result.cost >= 0 && drawn.every((count) => count === 3 * side * side));
});

test("a flow", async () => {
  const drawn = [];
  const { time, energy } = await run("lockstep.flow(", { lockstep: ls, draw: (values, shape) => drawn.push([values.length, ...shape]) }, "time, energy");
  assert.ok(time > 0 && energy > 0.1);
  assert.deepEqual(drawn, [[256 * 256, 256, 256]]);
});

test("a city", async () => {
  const heights = Float32Array.from({ length: 24 * 24 }, (_, k) => ((k / 24 | 0) % 12 < 5 && (k % 24) % 12 < 5 ? 12 : 2)), seen = [];
  const head = ["LOCATION,Goteborg,-,SWE,-,0,57.7,11.97,1.0,5.0", ...Array(6).fill("-"), "DATA PERIODS,1,1,Data,Sunday,1/1,12/31"];
  const sun = (hour) => Math.max(0, Math.round(800 * Math.sin((Math.PI * (hour - 4)) / 18)));
  const rows = Array.from({ length: 24 }, (_, h) => `2015,6,21,${h + 1},0,-,20,10,53,101325,0,0,340,${sun(h + 1)},${sun(h + 1) >> 1},90,0,0,0,0,180,2.5,5,5,20,77777,9,999999999,0,0.1,0,0,0,0,0`);
  const given = { lockstep: ls, file: file("dsm.npy", npy("<f4", [24, 24], heights)), epw: file("day.epw", bytesOf([...head, ...rows].join("\n") + "\n")), report: (share) => seen.push(share), draw: (values) => seen.push(values.length) };
  const { buildings, svf, times } = await run("lockstep.city(", given, "buildings, svf, times");
  assert.ok(buildings.some((value) => value === 0) && svf.some((value) => value > 0 && value < 1));
  assert.deepEqual([times.length, seen.at(-1), seen.at(-2)], [24, 24 * 24, 1]);
});

test("least squares", async () => {
  const poses = Array.from({ length: 8 }, (_, k) => `VERTEX_SE2 ${k} ${k} ${(k % 2) / 5} 0.1`), edges = poses.slice(1).map((_, k) => `EDGE_SE2 ${k} ${k + 1} 1 0 0 10 0 0 10 0 10`);
  const saved = [], given = { lockstep: ls, download: (bytes) => saved.push(bytes.length), file: file("line.g2o", bytesOf([...poses, ...edges].join("\n") + "\n")) };
  const { parameters, standard_errors, initial_cost, final_cost, pieces, unknowns } = await run("lockstep.solve.fit(", given, "parameters, standard_errors, initial_cost, final_cost, pieces, unknowns");
  assert.ok(Math.abs(parameters.a - 5.3) < 0.1 && standard_errors.b > 0 && saved[0] > 50);
  assert.ok(final_cost < initial_cost);
  assert.deepEqual([pieces.length, unknowns], [1, 21]);  // the first pose is fixed
});

test("losses", async () => {
  const cells = 8 ** 3, wave = (count, phase) => Float64Array.from({ length: count }, (_, k) => Math.sin(k + phase)), given = { lockstep: ls };
  for (const level of [0, 1, 2]) {
    given[`sigma${level}`] = { values: wave(cells, level), shape: [8, 8, 8] };
    given[`u${level}`] = { values: wave(3 * cells, level), shape: [3, 8, 8, 8] };
  }
  const { loss, gradients, converged } = await run("lockstep.pde.loss(", given, "loss, gradients, converged");
  assert.ok(loss > 0 && gradients.d_u2.values.length === 3 * cells && converged);
});

test("studies", async () => {
  const { observed, files, results, copy_gbps } = await run("lockstep.pde.convergence(", { lockstep: ls }, "observed, files, results, copy_gbps");
  assert.ok(observed && files["convergence.csv"].length > 0);
  assert.ok(results.length > 0 && copy_gbps > 0);
});

test("forecasts", async () => {
  const rows = Array.from({ length: 80 }, (_, k) => `${100 * k},${0.2 + 2 * (1 + k / 3) ** -0.8}`);
  const given = { lockstep: ls, file: file("log.csv", bytesOf(["step,loss", ...rows].join("\n") + "\n")) };
  const { advice, trajectory, sigma } = await run("lockstep.forecast.curve(", given, "advice, trajectory, sigma");
  assert.ok(advice);
  assert.ok(trajectory.length === 50 && sigma > 0);
});

test("a codec of fields", async () => {
  const frames = Float32Array.from({ length: 4 * 64 * 64 }, (_, k) => Math.sin(k / 7) + (k >> 12) / 8);
  const { ratio, omega } = await run("lockstep.flow.encode(", { lockstep: ls, frames, count: 4 }, "ratio, omega");
  assert.ok(ratio > 1 && omega.values.every((value, k) => Math.abs(value - frames[k]) <= 1e-3));
});

test("trainings", async () => {
  const curves = (k) => [0, 1, 2, 3].map((run) => 0.2 * run + 2 / (1 + k / (3 + run)));
  const sweep = { name: "sweep.csv", bytes: ["step,a,b,c,d", ...Array.from({ length: 60 }, (_, k) => [k, ...curves(k)].join())].join("\n") };
  const log = { name: "log.csv", bytes: ["step,loss", ...Array.from({ length: 60 }, (_, k) => `${k},${curves(k)[0]}`)].join("\n") };
  const task = { name: "line.toml", bytes: 'data = "points.npz"\nloss = "mean_squared"\nsteps = 20\nbatch = 4\nevaluate_every = 10\n[[layers]]\nkind = "dense"\nunits = 1\n' };
  const points = Float32Array.from({ length: 40 }, (_, k) => k / 20 - 1), seen = [];
  const examples = { name: "points.npz", bytes: npz({ inputs: npy("<f4", [40, 1], points), targets: npy("<f4", [40, 1], points) }) };
  const given = { lockstep: ls, sweep, log, task, examples, report: (share) => seen.push(share) };
  const { policies, files, val_loss, runs } = await run("lockstep.forecast.sweep(", given, "policies, files, val_loss, runs");
  assert.ok(policies.length > 3 && files["features.npz"].length > 1000 && val_loss >= 0);
  assert.deepEqual([runs.length, seen.every((share) => share >= 0 && share <= 1)], [1, true]);
});

test("every block ran", () => assert.equal(used.size, blocks.length));
