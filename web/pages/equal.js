// Runs cases in this browser and compares digests of their results with those that the native program left in digests.json.
import { load } from "./lockstep/lockstep.js";

const at = (id) => document.getElementById(id);
const groups = [["engine.", "the engine: memory, stencils, groups, atomics"], ["math.", "functions: exp, sin, pow …"],
  ["primitives.", "sums, scans, products"], ["fft.", "Fourier transforms"], ["", "all"]];
let stopped = false;

function row({ case: name, size, digest }, expected) {
  const verdict = !digest ? "not run here" : expected === undefined ? "no native result" : digest === expected ? "equal" : "different";
  const line = document.createElement("tr");
  line.dataset.verdict = verdict;
  for (const text of [name, size, digest.slice(0, 12), expected?.slice(0, 12) ?? "", verdict]) {
    const cell = document.createElement("td");
    cell.textContent = text;
    line.append(cell);
  }
  line.lastChild.className = verdict === "equal" ? "good" : verdict === "different" ? "bad" : "quiet";
  at("rows").append(line);
  return verdict;
}

function say(text, kind = "") {
  at("verdict").textContent = text;
  at("verdict").className = `verdict ${kind}`;
}

async function compare(lockstep, device, stored) {
  stopped = false;
  at("rows").replaceChildren();
  at("run").disabled = true;
  at("stop").disabled = false;
  const prefix = at("cases").value;
  const total = lockstep.cases().filter((c) => c.name.startsWith(prefix)).reduce((sum, c) => sum + c.sizes.length, 0);
  const count = { equal: 0, different: 0, "not run here": 0, "no native result": 0 };
  let done = 0;
  const start = performance.now();
  try {
    await lockstep.digests(device, {
      cases: prefix,
      onRow(problem) {
        if (stopped) throw new DOMException("", "AbortError");
        count[row(problem, stored.digests[`${problem.case} ${problem.size}`])]++;
        at("progress").value = ++done / total;
        say(`${done} of ${total} problems …`);
      },
    });
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    const others = done - count.equal - count.different;
    const rest = others ? ` ${others} could not be compared.` : "";
    if (count.different) say(`${count.different} of ${done} problems differ from the native program.${rest}`, "bad");
    else if (count.equal === 0) say(`Nothing could be compared.`, "bad");
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
  if (!answer.ok) throw new Error("digests.json is missing beside this page: build the pages anew (web/build).");
  const stored = await answer.json();
  const device = await lockstep.open("cpu");
  at("machines").textContent = `This browser: ${device.info.description} (${device.info.architecture}). Native program: ${stored.device} (${stored.architecture}).`;
  at("run").addEventListener("click", () => compare(lockstep, device, stored));
  at("stop").addEventListener("click", () => { stopped = true; });
  const named = new URLSearchParams(location.search).get("cases");
  if (named !== null && groups.some(([prefix]) => prefix === named)) at("cases").value = named;
  performance.mark("ready");
  if (named !== null) await compare(lockstep, device, stored);
  else {
    at("run").disabled = false;
    say("Ready.");
  }
}

main().catch((error) => say(`This page cannot run here: ${error.message}`, "bad"));
