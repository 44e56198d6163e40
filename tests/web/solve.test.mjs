// lockstep.solve under node: the native program's numbers and files for the same options, and refusals.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { native, refused } from "./native_command.mjs";
import { load } from "./site.mjs";

let ls;
before(async () => {
  ls = await load();
});

const text = (bytes) => Buffer.from(bytes).toString("latin1");  // all bytes, for binary files
/** A document without times, and without counts of the native program's cache of kernels. */
function timeless({ solve_seconds, kernels_compiled, cache_hits, trace, ...document }) {
  return { ...document, ...(trace && { trace: trace.map(({ seconds, ...row }) => row) }) };
}
/** Equal but for the last digits of numbers. */
function near(found, expected, where) {
  if (typeof found === "number" && typeof expected === "number")
    assert.ok(Math.abs(found - expected) <= 1e-9 * Math.max(Math.abs(expected), 1), `${where}: ${found} near ${expected}`);
  else if (found && typeof found === "object") {
    assert.deepEqual(Object.keys(found), Object.keys(expected ?? {}), where);
    for (const [name, value] of Object.entries(found)) near(value, expected[name], `${where}.${name}`);
  } else assert.equal(found, expected, where);
}
const cells = (file) => file.split(/[\s,]+/).map((cell) => (cell === "" || Number.isNaN(Number(cell)) ? cell : Number(cell)));
/** The page's answer and files, and those of the native program. */
async function both(call, options, command, files = {}) {
  const { files: written, device, fallbacks, notes, ...document } = await ls.solve[call]({ ...options, device: "cpu" });
  const there = await native(["solve", ...command], { files });
  assert.deepEqual([fallbacks, notes], [{}, []]);
  const page = { document: timeless(document), files: Object.fromEntries(Object.entries(written).map(([name, bytes]) => [name, text(bytes)])) };
  return [page, { document: timeless(Object.fromEntries(Object.keys(document).map((name) => [name, there.document[name]]))), files: there.files }];
}
async function equal(...call) {
  const [page, there] = await both(...call);
  assert.deepEqual(page, there);
  return page;
}
/** Of work that has sums of Eigen, whose order depends on the width of vectors, or functions of the C library. */
async function close(...call) {
  const [page, there] = await both(...call);
  const { trace, gradient_max, ...document } = page.document;
  near(document, Object.fromEntries(Object.keys(document).map((name) => [name, there.document[name]])), call[0]);
  assert.deepEqual(trace?.map(({ accepted }) => accepted), there.document.trace?.map(({ accepted }) => accepted));
  assert.deepEqual(Object.keys(page.files).sort(), Object.keys(there.files).sort());
  for (const [name, file] of Object.entries(page.files)) near(cells(file), cells(there.files[name]), name);
  return page;
}

const decay = ["t,count,error", ...Array.from({ length: 24 }, (_, k) => `${k},${(5 / (1 + k) + 0.3 + 0.05 * ((7 * k) % 5)).toFixed(4)},0.1`)].join("\n");
const model = "a/(1 + b*t) + c", tables = { "decay.csv": decay };
const fit = { file: { name: "decay.csv", bytes: decay }, model, y: "count", sigma: "error", initial: { a: 4, b: 0.8, c: 0.2 }, out: "table.csv" };
const fitCommand = ["fit", "decay.csv", "--model", model, "--y", "count", "--sigma", "error", "--initial", "a=4,b=0.8,c=0.2", "--out", "table.csv"];

test("a curve of a table", async () => {
  const { document, files } = await close("fit", fit, fitCommand, tables);
  assert.ok(Math.abs(document.parameters.a - 5) < 0.2, `${document.parameters.a}`);
  assert.equal(files["table.csv"].split("\n").length, 26);
  // The minimisation itself has the native program's bits; errors of the parameters do not.
  for (const [more, flags] of [[{ linear: "pcg" }, ["--linear", "pcg"]], [{ method: "lbfgs" }, ["--method", "lbfgs"]]]) {
    const [page, there] = await both("fit", { ...fit, ...more }, [...fitCommand, ...flags], tables);
    assert.deepEqual([page.document.trace, page.document.parameters, page.files], [there.document.trace, there.document.parameters, there.files]);
  }
});

/** Poses on a circle that see their neighbours, and one far one. */
function ring(count) {
  const lines = [];
  for (let k = 0; k < count; ++k) lines.push(`VERTEX_SE2 ${k} ${(3 * Math.cos(k) + 0.1 * (k % 3)).toFixed(3)} ${(3 * Math.sin(k)).toFixed(3)} ${(0.9 * k).toFixed(3)}`);
  for (let k = 0; k < count; ++k) lines.push(`EDGE_SE2 ${k} ${(k + 1) % count} ${(2.8 + 0.01 * (k % 5)).toFixed(3)} 0.4 0.95 20 1 0.5 30 0.2 40`);
  lines.push(`EDGE_SE2 0 ${count >> 1} 1.5 -2 1.2 5 0 0 5 0 5`);
  return lines.join("\n") + "\n";
}

test("a pose graph", async () => {
  const graph = ring(20), robust = { loss: "huber:1.5", residuals: "residuals.csv" }, robustFlags = ["--robust", "huber:1.5", "--residuals", "residuals.csv"];
  for (const [linear, more, flags] of [["pcg", {}, []], ["cholesky", robust, robustFlags]]) {
    const options = { file: { name: "ring.g2o", bytes: new TextEncoder().encode(graph) }, out: "solved.g2o", max_iterations: 8, linear, ...more };
    const { document } = await close("poseGraph", options, ["g2o", "ring.g2o", "--out", "solved.g2o", "--max-iterations", "8", "--linear", linear, ...flags], { "ring.g2o": graph });
    assert.ok(document.final_cost < document.initial_cost);
  }
});

test("a scene of cameras and points", async () => {
  const made = { cameras: 4, observations: 200, seed: 3, out: "scene.txt", max_iterations: 1 };
  const { files } = await close("bundle", made, ["bal", "--synthetic", "4,200", "--seed", "3", "--out", "scene.txt", "--max-iterations", "1"]);
  const scene = files["scene.txt"];
  for (const linear of ["schur-pcg", "pcg", "dense-schur", "cholesky"])
    await equal("bundle", { file: { name: "scene.txt", bytes: scene }, linear, max_iterations: 3, out: "solved.txt" },
      ["bal", "scene.txt", "--linear", linear, "--max-iterations", "3", "--out", "solved.txt"], { "scene.txt": scene });
  // A binary file; centres of cameras are computed with functions of the C library.
  const [page, there] = await both("bundle", { file: { name: "scene.txt", bytes: scene }, max_iterations: 1, ply: "solved.ply" },
    ["bal", "scene.txt", "--max-iterations", "1", "--ply", "solved.ply"], { "scene.txt": scene });
  const [found, expected] = [page, there].map(({ files: { "solved.ply": ply } }) => [ply.length, ply.slice(0, ply.indexOf("end_header") + 100)]);
  assert.deepEqual(found, expected);
});

test("the doctor of a graph, a scene and a fit", async () => {
  const graph = ring(12), { document, files } = await close("doctor", { file: { name: "ring.g2o", bytes: graph }, influence: "influence.csv" }, ["doctor", "ring.g2o", "--influence", "influence.csv"], { "ring.g2o": graph });
  assert.deepEqual([document.kind, files["influence.csv"].trim().split("\n").length], ["g2o", 14]);
  const { files: made } = await ls.solve.bundle({ cameras: 3, observations: 90, max_iterations: 20, out: "scene.txt", device: "cpu" }), scene = text(made["scene.txt"]);
  await close("doctor", { file: { name: "scene.txt", bytes: scene } }, ["doctor", "scene.txt"], { "scene.txt": scene });
  await close("doctor", { file: fit.file, model, y: "count", initial: "a=4,b=0.8,c=0.2" }, ["doctor", "decay.csv", "--model", model, "--y", "count", "--initial", "a=4,b=0.8,c=0.2"], tables);
});

test("a minimisation resumes from its checkpoint to the same poses", async () => {
  const options = { device: "cpu", file: { name: "ring.g2o", bytes: ring(12) } };
  const { final_cost } = await ls.solve.poseGraph(options);
  const { files } = await ls.solve.poseGraph({ ...options, max_iterations: 2, checkpoint: "state" });
  const rest = await ls.solve.poseGraph({ ...options, checkpoint: { name: "state", bytes: files.state } });
  assert.equal(rest.final_cost, final_cost);
  await refused(ls.solve.poseGraph({ ...options, checkpoint: { name: "state", bytes: "x" } }), /state/);
});

test("what is no file, option or problem is refused in the page's words", async () => {
  const file = { name: "decay.csv", bytes: decay }, device = "cpu";
  await refused(ls.solve.fit({ device, file: "decay.csv", model: "a*t", y: "count" }), /decay\.csv.*\{ name, bytes \}/);
  await refused(ls.solve.fit({ device, model: "a*t", y: "count" }), /file/);
  await refused(ls.solve.fit({ device, file, model: "a*t" }), /y/);
  await refused(ls.solve.fit({ device, file, model: "a*", y: "count" }), /a\*/);
  await refused(ls.solve.fit({ device, file, model: "a*t", y: "count", colour: 1 }), /option colour/);
  await refused(ls.solve.fit({ device, file, others: [file], model: "a*t", y: "count" }), /decay\.csv/);
  await refused(ls.solve.fit({ device, file, model: "a*t", y: "count", picture: "a.svg" }), /option picture/);
  await refused(ls.solve.fit({ device, file, model: "a*t", y: "count", out: "folder/a.csv" }), /no folder/);
  await refused(ls.solve.fit({ device, file: { name: "a.csv", bytes: 7 }, model: "a*t", y: "count" }), /ArrayBuffer/);
  await refused(ls.solve.poseGraph({ device, file: { name: "a.g2o", bytes: "" } }), /a\.g2o/);
  await refused(ls.solve.poseGraph({ device, file: { name: "a.g2o", bytes: "EDGE_SE2 1" } }), /a\.g2o/);
  await refused(ls.solve.poseGraph({ device, file: { name: "a.g2o", bytes: new Uint8Array([0x1f, 0x8b, 8, 0]) } }), /packed.*DecompressionStream/);
  await refused(ls.solve.bundle({ device, file: { name: "a.txt", bytes: "1 1 1 0 0" } }), /a\.txt/);
  await refused(ls.solve.doctor({ device, file: { name: "a.g2o", bytes: "\n" } }), /a\.g2o/);
  assert.equal(ls.usage().arrays, 0);
});
