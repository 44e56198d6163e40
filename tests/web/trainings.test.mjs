// Commands of lockstep.forecast and lockstep.flow that read and write files, under node: the native program's results, and refusals.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { digests, members, native, refused } from "./native_command.mjs";
import { load, npy, npz } from "./site.mjs";

let ls;
before(async () => {
  ls = await load({ print: () => {} });
});
const text = (bytes) => new TextDecoder().decode(bytes);
/** What both have, without the page's own members and those that name files or times. */
const own = ["device", "fallbacks", "notes", "files", "training_seconds", "seconds", "steps_per_second"];
const common = (answer) => Object.fromEntries(Object.entries(answer).filter(([name]) => !own.includes(name)));

const rows = Array.from({ length: 60 }, (_, k) => `${10 * k},${0.3 + 2 / (1 + 0.1 * k) * (1 + 0.02 * Math.sin(7 * k))},${1e-3 * (1 - k / 100)}`);
const log = { name: "log.csv", bytes: ["step,loss,lr", ...rows].join("\n") };

test("features of a log are those of the native program", async () => {
  for (const [options, flags] of [[{}, []], [{ precision: "f64", normalised: true, history: 20 }, ["--precision", "f64", "--normalised", "--history", "20"]]]) {
    const { files, ...answer } = await ls.forecast.encode({ device: "cpu", log, out: "features.npz", ...options });
    const { document, arrays } = await native(["forecast", "encode", "log.csv", "--out", "features.npz", ...flags], { files: { "log.csv": log.bytes } });
    assert.deepEqual(common(answer), members(common(answer), document));
    assert.deepEqual(Object.keys(files), ["features.npz"]);
    const found = digests(await ls.arrays({ name: "features.npz", bytes: files["features.npz"] }));
    assert.deepEqual(Object.keys(found), Object.keys(arrays));
    // Weights of averages are powers of the C library.
    assert.deepEqual(Object.keys(arrays).filter((name) => found[name] !== arrays[name] && !name.includes("_ema_")), []);
  }
});

test("a sweep's policies save what the native program's do, and its checkpoint has every fit", async () => {
  const runs = Array.from({ length: 6 }, (_, r) => Array.from({ length: 60 }, (__, k) => 0.2 * r + 1.5 / (1 + k / (2 + r)) + 0.001 * Math.sin(k * (r + 3))));
  const sweep = { name: "sweep.csv", bytes: ["step,a,b,c,d,e,f", ...runs[0].map((_, k) => [k, ...runs.map((run) => run[k])].join())].join("\n") };
  const { policies, files } = await ls.forecast.sweep({ device: "cpu", log: sweep, checkpoint: "fits.npz" });
  const { document } = await native(["forecast", "sweep", "sweep.csv"], { files: { "sweep.csv": sweep.bytes } });
  assert.ok(policies.length > 4);
  // Fits use functions of the C library; policies stop at checks, whose shares are exact.
  policies.forEach((row, k) => {
    for (const [name, value] of Object.entries(document.policies[k]))
      assert.ok(row[name] === value || Math.abs(row[name] - value) < 1e-12, `${name} of ${row.policy}: ${row[name]} near ${value}`);
  });
  const checkpoint = { name: "fits.npz", bytes: files["fits.npz"] };
  assert.deepEqual((await ls.forecast.sweep({ device: "cpu", log: sweep, checkpoint })).policies, policies);
  await refused(ls.forecast.sweep({ device: "cpu", synthetic: 1, runs: 4, checkpoint }), /fits\.npz/);
  await refused(ls.forecast.sweep({ device: "cpu" }), /log.*synthetic/);
  await refused(ls.forecast.sweep({ device: "cpu", synthetic: 1, runs: 2 }), /runs/);
});

/** log.csv without its column of seconds. */
const withoutSeconds = (csv) => csv.trim().split("\n").map((line) => line.split(",").filter((_, k) => k !== 6).join());
async function comparedTraining(options, flags, given = {}) {
  const { files, runs, ...answer } = await ls.forecast.train({ device: "cpu", out: "out", ...options });
  const { document, files: written } = await native(["forecast", "train", ...flags, "--out", "out"], given);
  const { runs: thereRuns, ...there } = document, untimed = ({ seconds, overhead_seconds, ...run }) => run;
  assert.deepEqual(common(answer), members(common(answer), there));
  assert.deepEqual(runs.map(untimed), thereRuns.map(untimed));
  assert.deepEqual(Object.keys(files).sort(), ["out/log.csv", "out/log.jsonl"]);
  assert.deepEqual(withoutSeconds(text(files["out/log.csv"])), withoutSeconds(written["out/log.csv"]));
  return answer;
}

test("trainings have the native program's losses, step by step", async () => {
  await comparedTraining({ task: "xor", steps: 60, seeds: 2 }, ["xor", "--steps", "60", "--seeds", "2"]);
  await comparedTraining({ task: "xor", steps: 200, trainer: "predictive", warm_up: 40, precision: "f64" }, ["xor", "--steps", "200", "--trainer", "predictive", "--warm-up", "40", "--precision", "f64"]);
});

const toml = `data = "examples.npz"
loss = "cross_entropy"
steps = 30
batch = 8
evaluate_every = 10
[[layers]]
kind = "dense"
units = 12
activation = "relu"
[[layers]]
kind = "dense"
units = 3
`;
test("a task of one's own is read from its files, deflated ones too", async () => {
  const inputs = Float32Array.from({ length: 400 }, (_, k) => Math.sin(k * 1.7)), targets = Int32Array.from({ length: 100 }, (_, k) => (k * 7) % 3);
  for (const level of [0, 6]) {
    const bytes = npz({ inputs: npy("<f4", [100, 4], inputs), targets: npy("<i4", [100], targets) }, level);
    assert.deepEqual((await ls.arrays({ name: "examples.npz", bytes })).targets, { values: targets, shape: [100] });
    await comparedTraining({ task: { name: "task.toml", bytes: toml }, data: [{ name: "examples.npz", bytes }] }, ["task.toml", "--data", "."], { files: { "task.toml": toml, "examples.npz": bytes } });
  }
});

test("a training reports how far it is, ends when asked, and resumes from a checkpoint", async () => {
  const seen = [], options = { device: "cpu", task: "xor", out: "out", steps: 400 };
  await refused(ls.forecast.train({ ...options, onProgress: (done, total) => { seen.push([done, total]); return false; } }), /onProgress/);
  assert.deepEqual(seen.map(([, total]) => total), [400]);
  await assert.rejects(ls.forecast.train({ ...options, onProgress: () => { throw new RangeError("mine"); } }), RangeError);
  const { runs, files } = await ls.forecast.train({ ...options, steps: 100, target_loss: 0.65, checkpoint: "state.npz" });
  const rest = await ls.forecast.train({ ...options, steps: 100, checkpoint: { name: "state.npz", bytes: files["state.npz"] } });
  assert.equal(rest.runs[0].resumed_at, runs[0].steps);
});

test("what is no task, log or option of these calls is refused in the page's words", async () => {
  const options = { device: "cpu", out: "out" };
  await refused(ls.forecast.encode({ device: "cpu", log }), /out/);
  await refused(ls.forecast.encode({ device: "cpu", out: "a.npz" }), /log/);
  await refused(ls.forecast.encode({ device: "cpu", log, out: "a.npz", onProgress: () => {} }), /onProgress/);
  await refused(ls.forecast.train({ ...options }), /task/);
  await refused(ls.forecast.train({ ...options, task: "poems" }), /poems.*xor/);
  await refused(ls.forecast.train({ ...options, task: "xor", data: [{ name: "a.npz", bytes: new Uint8Array(3) }] }), /xor has no data/);
  await refused(ls.forecast.train({ ...options, task: "xor", rate_factor: 2 }), /rate_factor.*trainer/);
  await refused(ls.forecast.train({ ...options, task: { name: "t.toml", bytes: toml }, data: "folder" }), /data.*\{ name, bytes \}/);
  await refused(ls.forecast.train({ ...options, task: { name: "t.toml", bytes: toml }, data: [] }), /examples\.npz/);
  await refused(ls.forecast.train({ ...options, task: { name: "t.toml", bytes: toml }, data: [{ name: "examples.npz", bytes: new Uint8Array(30) }] }), /examples\.npz/);
  await refused(ls.forecast.train({ ...options, task: "mnist" }), /mnist/);
  await refused(ls.arrays({ name: "a.npz", bytes: new Uint8Array(30) }), /a\.npz/);
  await refused(ls.arrays({ name: "a.npz" }), /bytes/);
  assert.equal(ls.usage().arrays, 0);
});

/** Frames of a decaying wave, f32 (time, y, x). */
const frames = { shape: [12, 16, 16], values: Float32Array.from({ length: 12 * 256 }, (_, k) => {
  const t = k >> 8, y = (k >> 4) & 15, x = k & 15;
  return 0.97 ** t * (((3 * x + 5 * y + t) % 16) / 8 - 1 + ((x * y + 2 * t) % 7) / 7);
}) };
/** The same document, with numbers that an eigensolver computed to 1e-9. */
function near(found, expected, name = "document") {
  if (typeof expected === "number") return assert.ok(Math.abs(found - expected) <= 1e-9 * (1 + Math.abs(expected)), `${name}: ${found} near ${expected}`);
  if (expected === null || typeof expected !== "object") return assert.equal(found, expected, name);
  assert.deepEqual(Object.keys(found), Object.keys(expected), name);
  for (const key of Object.keys(expected)) near(found[key], expected[key], `${name}.${key}`);
}
/** The page's answer and files of a command, and the native program's on the same files. */
async function comparedFlow(call, options, flags, given) {
  const { files, ...answer } = await ls.flow[call]({ device: "cpu", ...options });
  const { document, arrays } = await native(["flow", call, ...flags, ...(call === "compare" ? [] : ["--no-record"])], { files: given });
  (call === "learn" ? near : assert.deepEqual)(common(answer), members(common(answer), document));
  const [name] = Object.keys(files), read = name ? await ls.arrays({ name, bytes: files[name] }) : {};
  const { header, checksum, ...numbers } = digests(read), { header: there, checksum: sum, ...expected } = arrays;
  return { answer, bytes: files[name], numbers, expected, same: [header, checksum], there: [there, sum] };
}

test("fields are encoded, learnt, rolled out and decoded to the native program's numbers", async () => {
  const given = { "frames.npy": npy("<f4", frames.shape, frames.values) };
  const fields = { name: "frames.npy", bytes: given["frames.npy"] };
  const exact = await comparedFlow("encode", { fields, max_error: 1e-3, out: "z.npz" }, ["frames.npy", "--max-error", "1e-3", "--out", "z.npz"], given);
  assert.deepEqual([exact.numbers, exact.same], [exact.expected, exact.there]);
  assert.deepEqual(digests(await ls.arrays({ name: "z.npz", bytes: (await ls.flow.encode({ device: "cpu", fields: frames, max_error: 1e-3, out: "z.npz" })).files["z.npz"] })).latent_code, exact.numbers.latent_code);
  const whole = await comparedFlow("decode", { encoded: { name: "z.npz", bytes: exact.bytes }, original: fields, out: "fields.npz" }, ["z.npz", "--original", "frames.npy", "--out", "fields.npz"], { ...given, "z.npz": exact.bytes });
  assert.deepEqual(whole.numbers, whole.expected);
  assert.ok(whole.answer.max_error <= 1e-3);
  const short = await comparedFlow("encode", { fields, cut: 4, out: "z.npz" }, ["frames.npy", "--cut", "4", "--out", "z.npz"], given), latents = { "z.npz": short.bytes };
  assert.deepEqual(short.numbers, short.expected);
  const model = await comparedFlow("learn", { latents: { name: "z.npz", bytes: short.bytes }, method: "dmd", vectors: 3, out: "model.npz" }, ["z.npz", "--method", "dmd", "--vectors", "3", "--out", "model.npz"], latents);
  const future = await comparedFlow("rollout", { model: { name: "model.npz", bytes: model.bytes }, steps: 5, out: "future.npz" }, ["model.npz", "--steps", "5", "--out", "future.npz"], { "model.npz": model.bytes });
  assert.deepEqual(future.numbers, future.expected);
});

test("two runs are compared as the native program does", async () => {
  const other = { shape: frames.shape, values: frames.values.map((value) => 1.01 * value) };
  const files = { "a.npy": npy("<f4", frames.shape, frames.values), "b.npy": npy("<f4", frames.shape, other.values) };
  const { rows: found, ...answer } = await ls.flow.compare({ device: "cpu", a: { name: "a.npy", bytes: files["a.npy"] }, b: other });
  const { document } = await native(["flow", "compare", "a.npy", "b.npy"], { files });
  assert.deepEqual(found, document.rows);
  assert.ok(Math.abs(answer.energy_drift - document.energy_drift) < 1e-12 && Math.abs(answer.energy_drift - (1.01 ** 2 - 1)) < 1e-6);
});

test("what is no field, encoded file or model is refused in the page's words", async () => {
  const device = "cpu", file = (name, bytes = new Uint8Array(40)) => ({ name, bytes });
  await refused(ls.flow.encode({ device, out: "z.npz" }), /fields/);
  await refused(ls.flow.encode({ device, fields: frames, out: "z.nc" }), /z\.nc.*\.npz/);
  await refused(ls.flow.encode({ device, fields: frames, out: "z.npz", low: 3 }), /low.*codec/);
  await refused(ls.flow.encode({ device, fields: { values: new Float32Array(3), shape: [4] }, out: "z.npz" }), /3 elements/);
  await refused(ls.flow.decode({ device, encoded: file("z.npz"), out: "f.npz" }), /z\.npz/);
  await assert.rejects(ls.flow.decode({ device, encoded: file("z.npz"), out: "f.nc" }), (error) => error.name === "UnsupportedError" && /netCDF/.test(error.message));
  await assert.rejects(ls.flow.encode({ device, fields: file("run.nc"), out: "z.npz" }), (error) => error.name === "UnsupportedError" && /netCDF.*\.npz/.test(error.message));
  await assert.rejects(ls.flow.encode({ device, fields: file("run.mat"), out: "z.npz" }), (error) => error.name === "UnsupportedError" && /\.mat/.test(error.message));
  await refused(ls.flow.rollout({ device, model: file("m.npz"), out: "z.npz" }), /steps/);
  await refused(ls.flow.compare({ device, a: frames }), /option b|b/);
  assert.equal(ls.usage().arrays, 0);
});
