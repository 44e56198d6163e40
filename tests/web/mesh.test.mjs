// Meshes through lockstep.js under node, where the core cannot be suspended: what is known of the minimum.
import assert from "node:assert/strict";
import { test } from "node:test";
import { InputError, load } from "./site.mjs";

const obj = (text) => new TextEncoder().encode(text);
const bar = obj("v 0 0 0\nv 1 0 0\nv 0.5 1 0\nv 1.5 1 0\nf 1 2 3\nf 2 4 3\n");

/** Minimises until it ends, over the returns of a core that cannot wait. */
async function minimum(problem, targets) {
  for (;;) {
    const result = await problem.minimise({ targets });
    if (result.termination !== "stopped") return result;
  }
}
const distance = (p, a, b) => Math.hypot(...[0, 1, 2].map((k) => p[3 * a + k] - p[3 * b + k]));

test("springs find their lengths again from another start", async () => {
  const ls = await load(), mesh = ls.mesh(bar, "bar.obj"), rest = mesh.positions;
  const start = rest.map((x, k) => x * (1 + 0.2 * ((k * 7) % 3)));
  const problem = await ls.meshProblem(mesh, { energy: "springs", device: "cpu", start });
  const { positions, cost } = await minimum(problem, []);
  assert.ok(cost < 1e-8, `cost ${cost}`);
  for (const [a, b] of [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]])
    assert.ok(Math.abs(distance(positions, a, b) - distance(rest, a, b)) < 1e-3, `edge ${a} ${b}`);
});

test("a rigid motion of all handles costs nothing, and what is held stays where it is", async () => {
  const ls = await load(), mesh = ls.mesh(bar, "bar.obj");
  const problem = await ls.meshProblem(mesh, { energy: "arap", device: "cpu", handles: [0, 1, 2] });
  // A quarter turn about z.
  const targets = [0, 1, 2].flatMap((v) => [0 - mesh.positions[3 * v + 1], mesh.positions[3 * v], 0]);
  const { positions, cost } = await minimum(problem, targets);
  assert.ok(cost < 1e-6, `cost ${cost}`);
  assert.deepEqual(Array.from(positions.subarray(0, 9)), targets.map(Math.fround));
  assert.ok(Math.hypot(positions[9] + 1, positions[10] - 1.5, positions[11]) < 2e-3, String(positions.subarray(9)));
});

test("STL corners become shared vertices; states arrive; onFrame ends a run and may throw", async () => {
  const ls = await load(), facets = [[0, 1, 3], [0, 3, 2]], corner = (v) => `vertex ${v % 2} ${v >> 1} 0\n`;
  const text = facets.map((f) => `facet normal 0 0 1\nouter loop\n${f.map(corner).join("")}endloop\nendfacet\n`).join("");
  const mesh = ls.mesh(obj(`solid s\n${text}endsolid s\n`), "s.STL");
  assert.deepEqual([mesh.counts.vertices, mesh.counts.triangles, mesh.counts.edges], [4, 2, 5]);
  const problem = await ls.meshProblem(mesh, { energy: "springs", device: "cpu", handles: [0] });
  let states = 0;
  const once = await problem.minimise({ targets: [-1, 0, 0], onFrame: ({ positions, iterations }) => { states += positions.length === 12 && iterations === 1; return false; } });
  assert.deepEqual([states, once.iterations, once.termination], [1, 1, "stopped"]);
  await assert.rejects(problem.minimise({ targets: [-2, 0, 0], onFrame: () => { throw new RangeError("mine"); } }), RangeError);
  assert.equal((await minimum(problem, [-1, 0, 0])).positions[0], -1);
});

test("requests that make no sense are refused", async () => {
  const ls = await load(), mesh = ls.mesh(bar, "bar.obj");
  const refused = (options, expected) => assert.rejects(ls.meshProblem(mesh, { device: "cpu", ...options }), (e) => e instanceof InputError && expected.test(e.message));
  await refused({ energy: "magic" }, /energy 'magic'/);
  await refused({ energy: "arap", handles: [4] }, /handles 4/);
  await refused({ energy: "arap", handles: [1], fixed: [1] }, /fixed and has a handle/);
  await refused({ energy: "arap", start: [1] }, /start.*12 numbers/);
  const problem = await ls.meshProblem(mesh, { energy: "arap", device: "cpu", handles: [1] });
  await assert.rejects(problem.minimise({ targets: [0, 0] }), /three numbers/);
  await assert.rejects(problem.minimise({ targets: [0, 0, NaN] }), /finite/);
  problem.dispose();
  await assert.rejects(problem.minimise({ targets: [0, 0, 0] }), /mesh problem/);
});
