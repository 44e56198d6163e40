// Runs cases in this browser. On its processor, digests of the results are compared with those that the native program left in
// digests.json, on one machine or several; on WebGPU, the results with the interpreter's, within each case's bound.
import { load } from "./lockstep/lockstep.js";
import { at, say } from "./page.js";

const groups = [["engine.", "the engine: memory, stencils, groups, atomics"], ["math.", "functions: exp, sin, pow …"],
  ["primitives.", "sums, scans, products"], ["fft.", "Fourier transforms"], ["pde.", "losses of differential equations"], ["", "all"]];
let stopped = false;

function row(texts, verdict) {
  const line = document.createElement("tr");
  line.dataset.verdict = verdict;
  for (const text of [...texts, verdict]) {
    const cell = document.createElement("td");
    cell.textContent = text;
    line.append(cell);
  }
  line.lastChild.className = verdict === "equal" || verdict === "within its bound" ? "good" : verdict === "different" ? "bad" : "quiet";
  at("rows").append(line);
  return verdict;
}

/** On the processor: digests against those of the native program. */
function digestRow({ case: name, size, digest }, machines) {
  const expected = new Map();  // the machines that have a digest
  for (const [k, { digests }] of machines.entries()) {
    const stored = digests[`${name} ${size}`];
    if (stored !== undefined) expected.set(stored, [...(expected.get(stored) ?? []), short(machines[k])]);
  }
  const verdict = !digest ? "not run here" : expected.size === 0 ? "no native result" : expected.size === 1 && expected.has(digest) ? "equal" : "different";
  return row([name, size, digest.slice(0, 12), Array.from(expected, ([d, names]) => `${d.slice(0, 12)} ${names.join(", ")}`).join("; ")], verdict);
}
const short = ({ device }) => /\bH\d+|(?<=NVIDIA )[^,]+/.exec(device)?.[0] ?? "CPU";
/** On WebGPU: one row of the verify table. */
function verifyRow({ case: name, size, skipped, pass, differing_bits: bits, max_abs: most, bound }) {
  const verdict = skipped ? "not run here" : !pass ? "different" : bits === 0 ? "equal" : "within its bound";
  return row([name, size, skipped || `${bits} bits, at most ${Number(most).toPrecision(3)}`, bound], verdict);
}


async function compare(lockstep, devices, stored) {
  stopped = false;
  at("rows").replaceChildren();
  at("run").disabled = true;
  at("stop").disabled = false;
  const prefix = at("cases").value;
  const total = lockstep.cases().filter((c) => c.name.startsWith(prefix)).reduce((sum, c) => sum + c.sizes.length, 0);
  const count = { equal: 0, "within its bound": 0, different: 0, "not run here": 0, "no native result": 0 };
  const onGpu = at("device").value === "webgpu";
  at("other").textContent = onGpu ? "stated bound" : "native program";
  let done = 0;
  const start = performance.now();
  try {
    devices[at("device").value] ??= await lockstep.open(at("device").value);
    const device = devices[at("device").value];
    const { reason } = onGpu ? {} : await lockstep.threads();
    at("machines").textContent = `This browser: ${device.info.description} (${device.info.architecture}).` +
      (reason ? ` One thread: ${reason}.` : "") +
      (onGpu ? "" : ` Native program: ${stored.map(({ device, architecture }) => `${device} (${architecture})`).join("; ")}.`);
    await lockstep[onGpu ? "verify" : "digests"](device, {
      cases: prefix,
      onRow(problem) {
        if (stopped) throw new DOMException("", "AbortError");
        count[onGpu ? verifyRow(problem) : digestRow(problem, stored)]++;
        at("progress").value = ++done / total;
        say(`${done} of ${total} problems …`);
      },
    });
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    const close = count["within its bound"], others = done - count.equal - close - count.different;
    const rest = others ? ` ${others} could not be compared.` : "";
    const from = onGpu ? "leave their bounds" : "differ from the native program";
    if (count.different) say(`${count.different} of ${done} problems ${from}.${rest}`, "bad");
    else if (count.equal + close === 0) say(`Nothing could be compared.`, "bad");
    else if (close) say(`Within the bounds: ${count.equal + close} problems, ${count.equal} of them with every bit, in ${seconds} s.${rest}`, "good");
    else say(`Equal: every bit of ${count.equal} problems, in ${seconds} s.${rest}`, "good");
  } catch (error) {
    say(error.name === "AbortError" ? `Stopped after ${done} of ${total} problems.` : error.message, error.name === "AbortError" ? "" : "bad");
  }
  at("run").disabled = false;
  at("stop").disabled = true;
}

async function main() {
  for (const [prefix, name] of groups) at("cases").append(new Option(name, prefix));
  const [lockstep, answer] = await Promise.all([load(), fetch("digests.json")]);
  if (!answer.ok) throw new Error("digests.json is missing next to this page: rebuild the pages (web/build).");
  const stored = await answer.json();
  const devices = { cpu: await lockstep.open("cpu") };
  at("run").addEventListener("click", () => compare(lockstep, devices, stored));
  at("stop").addEventListener("click", () => { stopped = true; });
  const address = new URLSearchParams(location.search), named = address.get("cases");
  if (address.get("device") === "webgpu") at("device").value = "webgpu";
  if (named !== null && groups.some(([prefix]) => prefix === named)) at("cases").value = named;
  performance.mark("ready");
  if (named !== null) await compare(lockstep, devices, stored);
  else {
    at("run").disabled = false;
    say("Ready.");
  }
}

main().catch((error) => say(`This page cannot run here: ${error.message}`, "bad"));
