// The page "Turbulence" in Chromium: running, stirring by pointer and keys, settings, files, downloads, memory.
import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, damage, drop, drops, keepDownloads, loseDevice, refuses, refusesHugeFile, sleeps, text, visitor, withGpuBrowser } from "./visit.mjs";

const visit = visitor();
const small = "turbulence.html?device=cpu&points=128";
const step = /step (\d+), time (\S+), energy (\S+),/;
const state = async (page) => step.exec(await page.evaluate(text("numbers"))).slice(1).map(Number);
const picture = "document.getElementById('view').toDataURL()";
/** A field of n x n as an .npy file, in the page. */
const npy = (n, value) => `(() => {
  const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (${n}, ${n}), }".padEnd(117) + "\\n", file = new Uint8Array(128 + 4 * ${n * n});
  file.set([0x93, 78, 85, 77, 80, 89, 1, 0, 118, 0]);
  file.set(new TextEncoder().encode(header), 10);
  const values = new DataView(file.buffer, 128);
  for (let k = 0; k < ${n * n}; ++k) values.setFloat32(4 * k, ${value}, true);
  return file;
})()`;

test("it rests where motion is not wanted, runs, pauses, steps and starts again", (t) =>
  visit(small, { name: "turbulence" }, async (page) => {
    assert.deepEqual((await state(page))[0], 0);
    const before = await page.evaluate(picture);
    await page.evaluate("document.getElementById('run').click()");
    await page.until(`Number(${step}.exec(${text("numbers")})[1]) > 5`);
    assert.match(await page.evaluate(text("numbers")), /steps a second on WebAssembly.*Fallbacks: none\./);
    t.diagnostic(await page.evaluate(text("numbers")));
    const [awake] = await state(page);
    await sleeps(page);
    await page.until(`Number(${step}.exec(${text("numbers")})[1]) > ${awake}`);
    await page.evaluate("document.getElementById('run').click()");
    await page.until("document.getElementById('run').textContent === 'Run'");
    const [paused] = await state(page);
    await page.evaluate("document.getElementById('step').click()");
    await page.until(`Number(${step}.exec(${text("numbers")})[1]) === ${paused + 1}`);
    assert.notEqual(await page.evaluate(picture), before);
    await page.evaluate("document.getElementById('again').click()");
    await page.until(`Number(${step}.exec(${text("numbers")})[1]) === 0`);
    const times = JSON.parse(await page.evaluate(
      "JSON.stringify([performance.getEntriesByName('first-contentful-paint')[0]?.startTime, performance.getEntriesByName('ready')[0].startTime])"));
    t.diagnostic(`first picture after ${times[0]} ms, the flow after ${times[1]} ms`);
  }));

test("still fluid moves where it is stirred, by the mouse and by keys", () =>
  visit(small, { name: "turbulence_stirred" }, async (page) => {
    await page.evaluate(drop("still.npy", npy(64, 0)));
    assert.equal((await state(page))[2], 0);
    const { x, y, width, height } = await page.evaluate("document.getElementById('view').scrollIntoView(); JSON.parse(JSON.stringify(document.getElementById('view').getBoundingClientRect()))");
    await page.mouse("mousePressed", x + width * 0.3, y + height * 0.5);
    for (let k = 1; k <= 4; ++k) await page.mouse("mouseMoved", x + width * (0.3 + 0.05 * k), y + height * 0.5);
    await page.mouse("mouseReleased", x + width * 0.5, y + height * 0.5);
    await page.until(`Number(${step}.exec(${text("numbers")})[3]) > 0`);
    const [, , stirred] = await state(page);
    await page.evaluate("document.getElementById('view').focus()");
    await page.key("ArrowUp");
    await page.until(`Number(${step}.exec(${text("numbers")})[3]) > ${stirred}`);
    // A push to the right has fluid that turns to the left above it: the picture's colours differ there.
    const [above, below] = await page.evaluate(`(() => {
      const { data } = document.getElementById("view").getContext("2d").getImageData(26, 28, 1, 9);
      return [[...data.slice(0, 4)], [...data.slice(32)]];
    })()`);
    assert.notDeepEqual(above, below);
  }));

test("settings change a flow that runs, and what they cannot be is a sentence", () =>
  visit(small, {}, async (page) => {
    await page.evaluate("document.getElementById('run').click()");
    for (const [id, value] of [["forcing", "stochastic"], ["closure", "leith"], ["viscosity", "-3"], ["forcing", "kolmogorov"], ["drag", "0.2"]]) {
      const [before] = await state(page);
      await page.evaluate(choose(id, value));
      await page.until(`Number(${step}.exec(${text("numbers")})[1]) > ${before}`);
    }
    assert.doesNotMatch(await page.evaluate("document.getElementById('verdict').className"), /bad/);
    await page.evaluate(drop("tiny.npy", npy(8, 0)));
    assert.match(await page.evaluate(text("verdict")), /wavenumber 8/);
    await page.until("document.getElementById('run').textContent === 'Pause'");
  }));

test("downloads hold what the picture shows", () =>
  visit(small, {}, async (page) => {
    await page.evaluate(keepDownloads);
    await page.evaluate("document.getElementById('npy').click()");
    const [name, size, first] = await page.evaluate(`saved.blob.arrayBuffer().then((b) => [saved.name, b.byteLength, new TextDecoder("latin1").decode(new Uint8Array(b, 0, 80))])`);
    assert.equal(name, "vorticity.npy");
    assert.equal(size, 128 + 4 * 128 * 128);
    assert.match(first, /^.NUMPY\x01\x00v\x00\{'descr': '<f4', 'fortran_order': False, 'shape': \(128, 128\)/);
    await page.evaluate("saved.blob.arrayBuffer().then((b) => { const t = new DataTransfer(); t.items.add(new File([b], 'back.npy')); document.dispatchEvent(new DragEvent('drop', { dataTransfer: t, cancelable: true, bubbles: true })); })");
    await page.until(`${text("verdict")}.startsWith("back.npy: 128 × 128")`);
    await page.evaluate("document.getElementById('png').click()");
    await page.until("saved.name === 'vorticity.png' && saved.blob.type === 'image/png' && saved.blob.size > 1000");
  }));

test("what is no field is a sentence, and the flow before it stays", () =>
  visit(small, {}, async (page) => {
    await refuses(page, [["a.npy", `""`, /npy/], ["b.npy", `"hello"`, /b\.npy/], ["<img src=x onerror=alert(1)>.npy", `"x"`, /img/], ["../../c.npy", `new Uint8Array(1000)`, /c\.npy/],
      ["d.tif", npy(4, "NaN"), /finite/], ["e.npy", `new Uint8Array(200000001)`, /200 MB/], ["f.npy", npy(64, 1) + ".slice(0, 5000)", /bytes/], ["g.npy", npy(3, 1), /points|\b3\b/]]);
    await refusesHugeFile(page, "h.npy");
    await page.evaluate("document.getElementById('step').click()");
    await page.until(`Number(${step}.exec(${text("numbers")})[1]) === 1`);
  }));

test(`${drops} damaged fields never break the page`, (t) =>
  visit(small, {}, async (page) => {
    const counted = await damage(page, `[["a.npy", ${npy(8, "k % 3")}]]`);
    assert.ok(counted.refused > drops / 5, JSON.stringify(counted));
    t.diagnostic(JSON.stringify(counted));
    assert.match(await page.evaluate(drop("good.npy", npy(64, "Math.sin(k)"))), /^good.npy: 64 × 64/);
  }));

test("a graphics device that is lost falls back to the processor, and the page counts it", () =>
  withGpuBrowser((gpu) => visit(small, {}, async (page) => {
    await page.evaluate(loseDevice);
    await page.evaluate(choose("device", "webgpu,cpu"));
    await page.until(`/on WebAssembly.*Fallbacks: flow\\.initial 1\\./.test(${text("numbers")})`);
    await page.evaluate("document.getElementById('step').click()");
    await page.until(`Number(${step}.exec(${text("numbers")})[1]) === 1`);
  }, gpu)));

test("memory stays flat, also at a quarter of the processor's speed; a dark phone", () =>
  visit("turbulence.html?device=cpu&points=128&forcing=stochastic", { name: "turbulence_phone_dark", width: 390, height: 844, phone: true, dark: true }, async (page) => {
    await page.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    await page.evaluate("document.getElementById('run').click()");
    await page.until(`Number(${step}.exec(${text("numbers")})[1]) > 4`);
    const used = async () => {
      await page.send("HeapProfiler.collectGarbage");
      return [(await page.send("Runtime.getHeapUsage")).usedSize / 1e6, Number(/(\d+) MB/.exec(await page.evaluate(text("numbers")))[1])];
    };
    const before = await used(), [steps] = await state(page);
    await page.until(`Number(${step}.exec(${text("numbers")})[1]) > ${steps + 20}`);
    const after = await used();
    assert.ok(after[0] < before[0] + 2 && after[1] === before[1], `${before} MB, then ${after} MB`);
    await page.evaluate("document.getElementById('run').click()");
    await page.until("document.getElementById('run').textContent === 'Run'");
  }));
