// The page "Meshes" in Chromium: pulling, keys, every energy, hostile files, a device that is lost meanwhile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, damage, drop, drops, loseDevice, refuses, refusesHugeFile, sleeps, text, visitor, withGpuBrowser } from "./visit.mjs";

const open = visitor();
const visit = (options, look, from) => open("meshes.html", options, async (page) => {
  await page.evaluate("document.getElementById('device').value = 'cpu'");
  await look(page);
}, from);
const square = "v 0 0 0\\nv 1 0 0\\nv 1 1 0\\nv 0 1 0\\nv 0.5 0.5 0.4\\nf 1 2 5\\nf 2 3 5\\nf 3 4 5\\nf 4 1 5\\n";

test("pulling at the surface bends it, and the handle stays where it was left", (t) =>
  visit({ name: "meshes_pulled" }, async (page) => {
    const { x, y, width, height } = await page.evaluate("document.getElementById('view').scrollIntoView(); JSON.parse(JSON.stringify(document.getElementById('view').getBoundingClientRect()))");
    await page.mouse("mousePressed", x + width * 0.5, y + height * 0.3);
    for (let k = 1; k <= 4; ++k) await page.mouse("mouseMoved", x + width * (0.5 + 0.05 * k), y + height * 0.3);
    await page.mouse("mouseReleased", x + width * 0.7, y + height * 0.3);
    await sleeps(page);  // in the middle
    await page.until(`/^Done after/.test(${text("verdict")})`);
    assert.match(await page.evaluate(text("numbers")), /\d+ iterations a second on WebAssembly.*Fallbacks: none\./);
    t.diagnostic(await page.evaluate(text("numbers")));
  }));

test("springs go back to their lengths; a dark phone, by keys", () =>
  visit({ name: "meshes_phone_dark", width: 390, height: 844, phone: true, dark: true }, async (page) => {
    await page.evaluate(drop("pyramid.obj", `"${square}"`));
    await page.evaluate(choose("energy", "springs"));
    await page.evaluate("document.getElementById('run').focus()");
    await page.key("Enter");
    await page.until(`/^Done after \\d+ iterations: cost/.test(${text("verdict")})`);
    const cost = Number(/cost (\S+),/.exec(await page.evaluate(text("verdict")))[1]);
    assert.ok(cost < 1e-12, `cost ${cost} of springs at rest`);
  }));

test("every energy runs", () =>
  visit({}, async (page) => {
    for (const energy of ["bend", "smooth", "developable", "arap"]) {
      await page.evaluate(drop("pyramid.obj", `"${square}"`));
      await page.evaluate(choose("energy", energy));
      await page.evaluate("document.getElementById('run').click()");
      await page.until(`/^Done|at least one|\\[/.test(${text("verdict")})`);
      assert.match(await page.evaluate(text("verdict")), /^Done after/, energy);
    }
  }));

test("what is no mesh is a sentence, and the mesh before it stays", () =>
  visit({}, async (page) => {
    await refuses(page, [["a.obj", `""`, /vertices/], ["b.stl", `"solid"`, /./], ["c.ply", `"ply\\nformat ascii 1.0\\nelement vertex 99999999999\\n"`, /./],
      ["d.txt", `"hi"`, /suffix/], ["<img src=x onerror=alert(1)>.obj", `"v 1 2"`, /img/], ["../../e.obj", `"f 1 2 3"`, /./],
      ["f.obj", `new Uint8Array(200000001)`, /200 MB/], ["nosuffix", `"x"`, /suffix/]]);
    await refusesHugeFile(page, "g.ply");
    assert.match(await page.evaluate(drop("good.obj", `"${square}"`)), /^good.obj: 5 vertices/);
  }));

test(`${drops} damaged files never break the page`, (t) =>
  visit({}, async (page) => {
    await page.evaluate(`window.facet = new Uint8Array(84 + 50); facet[80] = 1; for (let k = 0; k < 9; ++k) new DataView(facet.buffer).setFloat32(96 + 4 * k, k * k % 5, true);`);
    const counted = await damage(page, `[["a.obj", "${square}"], ["a.stl", facet],
      ["b.stl", "solid s\\nfacet normal 0 0 1\\nouter loop\\nvertex 0 0 0\\nvertex 1 0 0\\nvertex 0 1 0\\nendloop\\nendfacet\\nendsolid s\\n"],
      ["a.ply", "ply\\nformat ascii 1.0\\nelement vertex 3\\nproperty float x\\nproperty float y\\nproperty float z\\nelement face 1\\nproperty list uchar int vertex_indices\\nend_header\\n0 0 0\\n1 0 0\\n0 1 0\\n3 0 1 2\\n"]]`);
    assert.ok(counted.read > drops / 50 && counted.refused > drops / 5, JSON.stringify(counted));
    t.diagnostic(JSON.stringify(counted));
    assert.match(await page.evaluate(drop("good.obj", `"${square}"`)), /^good.obj: 5 vertices/);
    await page.evaluate("document.getElementById('run').click()");
    await page.until(`/^Done after/.test(${text("verdict")})`);
  }));

test("a graphics device that is lost meanwhile falls back to the processor, and the page counts it", () =>
  withGpuBrowser((gpu) => visit({}, async (page) => {
    await page.evaluate(loseDevice);
    await page.evaluate(drop("pyramid.obj", `"${square}"`));
    await page.evaluate(choose("energy", "springs"));
    await page.evaluate("document.getElementById('device').value = 'webgpu,cpu'; document.getElementById('run').click()");
    await page.until(`/^Done after/.test(${text("verdict")})`);
    assert.match(await page.evaluate(text("numbers")), /on WebAssembly.*Fallbacks: mesh\.minimise 1\./);
    assert.match(await page.evaluate(text("notes")), /^\[GPU\] mesh\.minimise failed: .*lost.*CPU fallback\.$/);
  }, gpu)));

test("with the processor four times as slow the page still answers", () =>
  visit({}, async (page) => {
    await page.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    await page.evaluate("document.getElementById('run').click()");
    await page.evaluate("document.getElementById('release').click()");
    await page.until(`${text("verdict")} === 'Pull at the surface.'`);
  }));
