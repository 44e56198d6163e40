// The pages in Chromium: how long until there is a picture, and their memory while they are used for minutes; JSON on stdout.
// usage: node bench/web_pages.mjs SITE_FOLDER CHROMIUM SECONDS [ROUNDS]
// Starts are measured first, one page at a time. Then each page is used in a browser of its own, all at once.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser, serve } from "../tests/web/browser.mjs";

/** What is done every fifth of a second, by its number. */
const uses = {
  "turbulence.html?device=cpu": "n === 0 ? click('run') : n % 50 === 0 && set('viscosity', -3.5 - (n % 3) / 2)",
  "city.html?device=cpu": "n % 600 === 300 ? click('sky') : set('time', 240 + (n % 200) * 5)",
  "meshes.html": "n % 100 === 0 ? click('release') : key('view', ['ArrowLeft', 'ArrowUp', 'ArrowRight', 'ArrowDown'][n % 4], true)",
  "equal.html": "n === 0 ? set('cases', 'engine.') : click('run')",
  "residuals.html": "n % 25 === 0 ? pick('example', n / 25 % 4) : key('plane', n % 50 < 25 ? 'ArrowRight' : 'ArrowLeft')",
};
const helpers = `globalThis.at = (id) => document.getElementById(id);
globalThis.click = (id) => at(id).disabled || at(id).click();
globalThis.set = (id, value) => { at(id).value = value; for (const kind of ["input", "change"]) at(id).dispatchEvent(new Event(kind)); };
globalThis.pick = (id, index) => { at(id).selectedIndex = index; at(id).dispatchEvent(new Event("change")); };
globalThis.key = (id, name, shiftKey) => at(id).dispatchEvent(new KeyboardEvent("keydown", { key: name, shiftKey, cancelable: true }));
globalThis.uses = 0;`;
/** The core's memory, which the pages keep to themselves. */
const watched = `{ const Memory = WebAssembly.Memory; globalThis.memories = [];
WebAssembly.Memory = new Proxy(Memory, { construct: (of, given) => { const made = Reflect.construct(of, given); memories.push(made); return made; } }); }`;

const [folder, chromium, seconds, rounds = "5"] = process.argv.slice(2);
if (!(Number(seconds) >= 0) || !(Number(rounds) >= 1)) {
  console.error("bench/web_pages.mjs: expected a folder with the pages, the program chromium, seconds of use and rounds of starts");
  process.exit(2);
}
const server = await serve(pathToFileURL(resolve(folder) + "/"), new Map(), true);
const pause = (ms) => new Promise((go) => setTimeout(go, ms));
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const isReady = "performance.getEntriesByName('ready').length > 0";

async function startOf(browser, address) {
  const page = await browser.page();
  await page.open(`${server.origin}/${address}`);
  await page.until(`${isReady} && performance.getEntriesByName('first-contentful-paint').length > 0`);
  const times = JSON.parse(await page.evaluate(`JSON.stringify(["first-contentful-paint", "ready"].map((name) => performance.getEntriesByName(name)[0].startTime))`));
  await page.close();
  return times;
}
const starts = Object.fromEntries(Object.keys(uses).map((address) => [address, []]));
for (let round = 0; round < Number(rounds); ++round)
  for (const address of Object.keys(starts)) {
    const browser = await Browser.start(chromium);  // nothing is in its cache
    starts[address].push(await startOf(browser, address));
    await browser.close();
  }
const start = Object.entries(starts).map(([page, times]) => ({ page, first_picture_ms: median(times.map(([paint]) => paint)), ready_ms: median(times.map(([, ready]) => ready)),
  least_ready_ms: Math.min(...times.map(([, ready]) => ready)) }));
const loadAtStart = loadavg()[0];

/** Uses one page and notes its memory, in MB, six times a minute: the core's, JavaScript's after a collection, all processes'. */
async function use(address, action) {
  const browser = await Browser.start(chromium), page = await browser.page(), series = [];
  await page.send("Page.addScriptToEvaluateOnNewDocument", { source: watched });
  await page.open(`${server.origin}/${address}`);
  await page.until(isReady);
  await page.evaluate(`${helpers} globalThis.timer = setInterval(() => { const n = globalThis.uses++; ${action}; }, 200)`);
  const begun = Date.now();
  for (let next = 0; next <= Number(seconds); next += 10) {
    await pause(begun + 1000 * next - Date.now());
    await page.send("HeapProfiler.collectGarbage");
    const { usedSize } = await page.send("Runtime.getHeapUsage"), { processInfo } = await browser.send("SystemInfo.getProcessInfo");
    const core = await page.evaluate("memories.reduce((sum, memory) => sum + memory.buffer.byteLength, 0)");
    const all = processInfo.reduce((sum, { id }) => {
      try {
        return sum + Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, "utf8"))[1]) * 1024;
      } catch {
        return sum;  // it has ended
      }
    }, 0);
    series.push([Math.round((Date.now() - begun) / 1000), ...[core, usedSize, all].map((bytes) => Number((bytes / 1e6).toFixed(2)))]);
  }
  const done = await page.evaluate("clearInterval(timer), globalThis.uses"), { errors } = page;
  await browser.close();
  return { page: address, uses: done, errors, columns: ["seconds", "core_mb", "javascript_mb", "processes_mb"], series };
}
const memory = Number(seconds) > 0 ? await Promise.all(Object.entries(uses).map(([address, action]) => use(address, action))) : [];
server.close();
const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8", cwd: import.meta.dirname }).trim();
const rows = (list) => list.map((row) => `  ${JSON.stringify(row)}`).join(",\n");
console.log(`{"command": ${JSON.stringify(`node bench/web_pages.mjs SITE chromium ${seconds} ${rounds}`)}, "commit": "${commit}", "load": ${loadAtStart.toFixed(1)},
 "start": [\n${rows(start)}],\n "memory": [\n${rows(memory)}]}`);
process.exit(0);
