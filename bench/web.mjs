// Times of cases on WebAssembly in node and in Chromium against the native CPU device, as JSON on stdout.
// usage: node --experimental-wasm-relaxed-simd bench/web.mjs BUILD_FOLDER CHROMIUM THREADS [ROUNDS]
// The three take turns; of each case the least time of all runs counts, since other work on the machine only adds to it. Runs are
// short enough to fit between other work.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser, serve } from "../tests/web/browser.mjs";

const cases = {
  "512x512": ["engine.copy", "engine.axpy", "primitives.transpose"],
  "64x64x64": ["engine.heat", "engine.heat_periodic", "engine.heat_f64"],
  65536: ["engine.control", "engine.functions", "engine.local_array", "engine.shared_scan", "engine.group_reduce", "engine.wide", "engine.rules",
    "math.exp", "math.sin", "math.pow", "math.log", "math.tanh", "math.erf", "math.exp.f64", "math.sin.f64",
    "primitives.sum", "primitives.inclusive_scan", "primitives.dot", "primitives.sum.f64"],
  "128x128x128": ["primitives.matmul", "primitives.matmul.f64"],
};
const [build, chromium, threads, rounds = "3"] = process.argv.slice(2);
if (!(Number(threads) >= 1) || !(Number(rounds) >= 1)) {
  console.error("bench/web.mjs: expected a build folder, the program chromium, a number of threads and one of rounds");
  process.exit(2);
}
const problems = Object.entries(cases).flatMap(([size, names]) => names.map((name) => ({ name, size })));
const site = pathToFileURL(join(build, "web/site") + "/");

const native = ({ name, size }) => {
  const options = ["--sizes", size, "--whole-names", "--device", "cpu", "--threads", threads, "--no-reference", "--json", "--quiet"];
  return JSON.parse(execFileSync(join(build, "bin/lockstep"), ["bench", name, ...options])).results[0].min_ms;
};
const inNode = await (async () => {
  const { load } = await import(new URL("lockstep/lockstep.js", site));
  const lockstep = await load({ threads: Number(threads) }), device = await lockstep.open("cpu");
  await lockstep.threads();
  return async ({ name, size }) => (await lockstep.bench(device, { cases: name, sizes: [size] })).find((row) => row.case === name).min_ms;
})();
const server = await serve(site, new Map([["/blank.html", "<!doctype html><link rel=icon href=icon.svg><title>blank</title>"]]), true);
const browser = await Browser.start(chromium), page = await browser.page();
await page.open(`${server.origin}/blank.html`);
await page.until("document.title === 'blank'");
await page.evaluate(`(async () => {
  const { load } = await import("./lockstep/lockstep.js");
  globalThis.lockstep = await load({ threads: ${Number(threads)} });
  await lockstep.threads();
  globalThis.device = await lockstep.open("cpu");
})()`);
const inChromium = async ({ name, size }) =>
  page.evaluate(`lockstep.bench(device, { cases: "${name}", sizes: ["${size}"] }).then((rows) => rows.find((row) => row.case === "${name}").min_ms)`);

const rows = problems.map(({ name, size }) => ({ case: name, size, native_ms: Infinity, node_ms: Infinity, chromium_ms: Infinity }));
for (let round = 0; round < Number(rounds); ++round)
  for (const [k, problem] of problems.entries())
    for (const [key, time] of [["native_ms", native], ["node_ms", inNode], ["chromium_ms", inChromium]])
      rows[k][key] = Math.min(rows[k][key], await time(problem));
await browser.close();
server.close();

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const ratio = (key) => Number(median(rows.map((row) => row.native_ms / row[key])).toFixed(3));
const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8", cwd: import.meta.dirname }).trim();
console.log(JSON.stringify({
  command: `node --experimental-wasm-relaxed-simd bench/web.mjs build chromium ${threads} ${rounds}`, commit, node: process.version,
  threads: Number(threads), median_of_native_over_node: ratio("node_ms"), median_of_native_over_chromium: ratio("chromium_ms"),
  rows: rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, typeof value === "number" ? Number(value.toPrecision(4)) : value]))),
}, null, 1));
process.exit(0);
