// The pages on Chromium's software adapter: results near those of the processor, and a sentence and a count where it does not work.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, webgpu } from "./browser.mjs";
import { breakShaders, choose, drop, keepDownloads, refuseDevice, text, visitor } from "./visit.mjs";

const visit = visitor({ excused: ["data:image/svg+xml;"] });  // Chromium's own calendar, in a field of a date
let browser;
before(async () => { browser = await Browser.start(process.env.WEB_BROWSER, webgpu); });
after(() => browser.close());

const onGpu = "webgpu,cpu", city = "city.html?device=cpu&example=96", flow = "turbulence.html?device=cpu&points=128";
const done = "document.getElementById('stop').disabled && !document.getElementById('sky').disabled";
const settled = 'import("./page.js").then(({ alone }) => alone(() => {}))';
const square = "v 0 0 0\\nv 1 0 0\\nv 1 1 0\\nv 0 1 0\\nv 0.5 0.5 0.4\\nf 1 2 5\\nf 2 3 5\\nf 3 4 5\\nf 4 1 5\\n";
/** The numbers of the picture, by the page's own download. */
async function field(page) {
  await page.evaluate("document.getElementById('npy').click()");
  return page.evaluate("saved.blob.arrayBuffer().then((bytes) => Array.from(new Float32Array(bytes.slice(128))))");
}
const distance = (a, b) => a.reduce((most, x, k) => Math.max(most, Math.abs(x - b[k])), a.length === b.length ? 0 : Infinity);

test("city: shadows and sky view of the adapter are those of the processor", (t) =>
  visit(city, { name: "city_webgpu" }, async (page) => {
    await page.evaluate(keepDownloads);
    const found = {};
    for (const device of ["cpu", onGpu]) {
      await page.evaluate(choose("device", device));
      await page.until(`/Computed by .*${device === "cpu" ? "WebAssembly" : "[Ss]wift[Ss]hader"}/.test(${text("numbers")})`);
      await page.evaluate(choose("time", 600));
      await page.evaluate(settled);
      found[device] = [await field(page)];
      await page.evaluate("document.getElementById('sky').click()");
      await page.until(done);
      assert.match(await page.evaluate(text("verdict")), /every pixel is there/);
      assert.match(await page.evaluate(text("numbers")), /Fallbacks: none\./);
      found[device].push(await field(page));
    }
    const [shadow, sky] = found.cpu.map((values, k) => distance(values, found[onGpu][k]));
    t.diagnostic(`largest differences: shadows ${shadow}, sky view factors ${sky}`);
    assert.equal(shadow, 0);
    assert.ok(sky <= 1e-5, `${sky}`);
  }, { browser }));

test("turbulence: steps of the adapter are those of the processor within f32", (t) =>
  visit(flow, {}, async (page) => {
    await page.evaluate(keepDownloads);
    const found = [];
    for (const device of ["cpu", onGpu]) {
      await page.evaluate(choose("device", device));
      await page.until(`/on .*${device === "cpu" ? "WebAssembly" : "[Ss]wift[Ss]hader"}.*step 0,/.test(${text("numbers")})`);
      await page.evaluate("document.getElementById('step').click()");
      await page.until(`/step 1,.*Fallbacks: none\\./.test(${text("numbers")})`);
      found.push(await field(page));
    }
    const scale = Math.hypot(...found[0]), off = Math.hypot(...found[0].map((w, k) => w - found[1][k])) / scale;
    t.diagnostic(`relative difference ${off}`);
    assert.ok(off <= 1e-5, `${off}`);
  }, { browser }));

/** Chooses the adapter on each page, and how its count of fallbacks reads when its work is done. */
const pages = {
  meshes: ["meshes.html", (page) => page.evaluate(drop("pyramid.obj", `"${square}"`)).then(() => page.evaluate(choose("energy", "springs"))),
    `document.getElementById("device").value = "${onGpu}"; document.getElementById("run").click()`, `/^Done after/.test(${text("verdict")})`, "mesh\\.minimise"],
  city: [city, () => {}, choose("device", onGpu), `/Computed by WebAssembly.*Fallbacks: (?!none)/.test(${text("numbers")})`, "urban\\.shadow"],
  turbulence: [flow, () => {}, choose("device", onGpu), `/on WebAssembly.*Fallbacks: (?!none)/.test(${text("numbers")})`, "flow\\.initial"],
};
for (const [name, [address, prepare, begin, ended, stage]] of Object.entries(pages)) {
  const failing = async (page, script, counted, said) => {
    await page.evaluate(script);
    await prepare(page);
    await page.evaluate(begin);
    await page.until(ended);
    assert.match(await page.evaluate(text("numbers")), new RegExp(`WebAssembly.*Fallbacks: ${counted} 1\\.`));
    assert.match(await page.evaluate(text("notes")), said);
    page.errors.splice(0, page.errors.length, ...page.errors.filter((error) => error !== "No available adapters."));  // Chromium's own
  };
  test(`${name}: without an adapter the processor serves, and the page says and counts it`, () =>
    visit(address, {}, (page) => failing(page, "", "webgpu", /^\[GPU\] webgpu failed: .*adapter.*CPU fallback\.$/)));
  test(`${name}: the same where the browser refuses a device`, () =>
    visit(address, {}, (page) => failing(page, refuseDevice, "webgpu", /^\[GPU\] webgpu failed: .*no device today.*CPU fallback\.$/), { browser }));
  test(`${name}: the same where the browser's compiler refuses a kernel`, () =>
    visit(address, {}, (page) => failing(page, breakShaders, stage, new RegExp(`^\\[GPU\\] ${stage} failed: .*CPU fallback\\.$`)), { browser }));
}
