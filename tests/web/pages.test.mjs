// The pages in a real Chromium: they load under their policy, ask nobody else for anything, and show what the core computed.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { serve } from "./browser.mjs";
import { site } from "./site.mjs";
import { drops, visitor } from "./visit.mjs";

const open = visitor({ ready: "location.protocol !== 'about:'", excused: ["data:image/svg+xml;"] });  // Chromium's own calendar, on the page "City"
/** Pictures are named after their pages, but those of another server. */
const visit = (path, options, look, from) =>
  open(path, { ...options, name: from ? "" : `${path.replace(/\W+/g, "_")}${options.phone ? "_phone" : ""}${options.dark ? "_dark" : ""}` }, look, from);
const verdict = "document.getElementById('verdict').textContent";
const rows = (kind) => `document.querySelectorAll('#rows tr[data-verdict="${kind}"]').length`;

test("the first page leads to the others", () =>
  visit("index.html", {}, async (page) => {
    const links = await page.until("document.querySelectorAll('main a').length > 1 && [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))");
    assert.deepEqual(links, ["meshes.html", "city.html", "turbulence.html", "equal.html", "residuals.html"]);
    for (const link of links) assert.ok((await readFile(new URL(link, site), "utf8")).includes("Content-Security-Policy"));
  }));

test("equal bits: every problem of the engine, by address", async (t) => {
  await visit("equal.html?cases=engine.", {}, async (page) => {
    await page.until(`/^(Equal|Nothing)|differ/.test(${verdict})`);
    assert.match(await page.evaluate(verdict), /^Equal: every bit of \d+ problems/);
    const equal = await page.evaluate(rows("equal"));
    assert.ok(equal > 50, `${equal} rows`);
    assert.equal(await page.evaluate(rows("different")), 0);
    assert.equal(await page.evaluate(rows("no native result")), 0);
    const times = JSON.parse(await page.evaluate(
      "JSON.stringify([performance.getEntriesByName('first-contentful-paint')[0]?.startTime, performance.getEntriesByName('ready')[0].startTime])"));
    t.diagnostic(`${equal} problems equal; first picture after ${times[0]} ms, core ready after ${times[1]} ms`);
  });
});

test("equal bits: by keyboard on a dark phone", () =>
  visit("equal.html", { width: 390, height: 844, dark: true, phone: true }, async (page) => {
    await page.until(`${verdict} === "Ready."`);
    await page.evaluate("document.getElementById('cases').value = 'primitives.'; document.body.focus()");
    for (let k = 0; k < 10 && (await page.evaluate("document.activeElement.id")) !== "run"; ++k) await page.key("Tab");
    assert.equal(await page.evaluate("document.activeElement.id"), "run");
    await page.key("Enter");
    await page.until(`${rows("equal")} > 5`);
    await page.evaluate("document.getElementById('stop').click()");
    await page.until(`/^Stopped|^Equal/.test(${verdict})`);
    assert.equal(await page.evaluate(rows("different")), 0);
  }));

test("equal bits: one wrong digest is seen, and missing ones are said", async () => {
  const stored = JSON.parse(await readFile(new URL("digests.json", site), "utf8"));
  const names = Object.keys(stored[0].digests).filter((name) => name.startsWith("engine."));
  const wrongly = (digest) => digest.replace(/^./, (digit) => (digit === "0" ? "1" : "0"));
  // Another machine that has two results, of which one differs.
  stored.push({ device: "NVIDIA H900, driver 1", architecture: "sm_900", digests: { [names[1]]: stored[0].digests[names[1]], [names[7]]: wrongly(stored[0].digests[names[7]]) } });
  stored[0].digests[names[3]] = wrongly(stored[0].digests[names[3]]);
  for (const { digests } of stored) delete digests[names[5]];
  const wrong = await serve(site, new Map([["/digests.json", JSON.stringify(stored)]]));
  try {
    await visit("equal.html?cases=engine.", {}, async (page) => {
      await page.until(`/^(Equal|Nothing)|differ/.test(${verdict})`);
      assert.match(await page.evaluate(verdict), /^2 of \d+ problems differ from the native program\. \d+ could not be compared/);
      assert.equal(await page.evaluate(rows("different")), 2);
      const texts = await page.evaluate("[...document.querySelectorAll('#rows tr[data-verdict=different]')].map((row) => row.innerText).join('\\n')");
      assert.match(texts, /[0-9a-f]{12} CPU; [0-9a-f]{12} H900|[0-9a-f]{12} CPU.*; [0-9a-f]{12} H900/);
      assert.match(await page.evaluate("document.getElementById('machines').textContent"), /NVIDIA H900, driver 1 \(sm_900\)/);
      assert.equal(await page.evaluate(rows("no native result")), 1);
    }, { server: wrong });
  } finally {
    wrong.close();
  }
});

test("threads where the page is cross-origin isolated, and one with the reason elsewhere", async (t) => {
  const isolated = await serve(site, new Map(), true), machines = "document.getElementById('machines').textContent";
  try {
    for (const [from, expected] of [[{ server: isolated }, /WebAssembly, \d+ threads? \(wasm-simd128\)\. Native/], [undefined, /WebAssembly, 1 thread \(.*One thread: the page is not cross-origin isolated\./]])
      await visit("equal.html?cases=primitives.", {}, async (page) => {
        await page.until(`/^(Equal|Nothing)|differ/.test(${verdict})`);
        assert.match(await page.evaluate(verdict), /^Equal: /);
        assert.match(await page.evaluate(machines), expected);
        assert.equal(await page.evaluate("crossOriginIsolated"), from !== undefined);
      }, from);
    await visit("index.html", {}, async (page) => {
      const runs = JSON.parse(await page.evaluate(`(async () => {
        const { load } = await import("./lockstep/lockstep.js"), runs = [];
        for (const options of [{ threads: 1, fused: false }, { threads: 1 }, { threads: 3, fused: false }, { threads: 3 }]) {
          const lockstep = await load(options), device = await lockstep.open("cpu");
          await lockstep.threads();
          const rows = [];
          for (const [cases, size] of [["engine.heat", "64x64x64"], ["engine.heat_f64", "64x64x64"], ["math.pow", "65536"], ["primitives.matmul", "128x128x128"]])
            rows.push(...await lockstep.digests(device, { cases, sizes: [size] }));
          let { byWorkers } = await lockstep.threads();
          for (let again = 0; options.threads > 1 && byWorkers === 0 && again < 1000; ++again) {  // workers of a busy machine may come late
            await lockstep.digests(device, { cases: "primitives.matmul", sizes: ["128x128x128"] });
            ({ byWorkers } = await lockstep.threads());
          }
          runs.push({ rows, byWorkers });
          lockstep.close();
        }
        return JSON.stringify(runs);
      })()`));
      for (const run of runs) assert.deepEqual(run.rows, runs[0].rows);
      assert.ok(runs[2].byWorkers > 0 && runs[3].byWorkers > 0);
      t.diagnostic(`${runs[0].rows.length} problems, ${runs[3].byWorkers} parts by workers`);
    }, { server: isolated });
  } finally {
    isolated.close();
  }
});

test("residuals: derivatives, kernel, dragging, keys and errors", () =>
  visit("residuals.html", {}, async (page) => {
    await page.until(`${verdict}.startsWith("Drag")`);
    await page.until("document.getElementById('minimum').textContent");
    const minimum = () => page.evaluate("document.getElementById('minimum').textContent");
    assert.match(await minimum(), /From \(-1\.50000, 2\.00000\): \d+ steps to \(1\.00000, 1\.00000\), sum of squares/);
    const table = await page.evaluate("document.getElementById('rows').innerText");
    assert.match(table, /-2\.50000/);  // 10 (2 - 1.5^2)
    assert.match(await page.evaluate("document.getElementById('kernel').textContent"), /kernel residual points rank 1/);

    const { x, y, width } = await page.evaluate("document.getElementById('plane').scrollIntoView(); JSON.parse(JSON.stringify(document.getElementById('plane').getBoundingClientRect()))");
    await page.mouse("mousePressed", x + width * 0.5, y + width * 0.5);
    await page.mouse("mouseMoved", x + width * 0.75, y + width * 0.25);
    await page.mouse("mouseReleased", x + width * 0.75, y + width * 0.25);
    await page.until("/^From .1\\.(49|50)/.test(document.getElementById('minimum').textContent)");
    await page.evaluate("document.getElementById('plane').focus()");
    await page.key("ArrowLeft");
    await page.until("/^From .1\\.(39|40)/.test(document.getElementById('minimum').textContent)");

    await page.evaluate("{ const t = document.getElementById('text'); t.value = 'sin(x) +'; t.dispatchEvent(new Event('input')); }");
    await page.until(`${verdict}.includes("the end of the expression")`);
    await page.evaluate("{ const t = document.getElementById('text'); t.value = 'sin(x) + q'; t.dispatchEvent(new Event('input')); }");
    await page.until(`${verdict}.includes("name q")`);
    await page.evaluate("{ const t = document.getElementById('text'); t.value = 'x - 2\\ny + 1'; t.dispatchEvent(new Event('input')); }");
    await page.until("document.getElementById('minimum').textContent.includes('to (2.00000, -1.00000)')");
  }));

test("residuals: the graph; points of a sketch follow the one that is dragged, by pointer and by keys", () =>
  visit("residuals.html", { dark: true }, async (page) => {
    const note = "document.getElementById('sketch-note').textContent";
    await page.until(`${note} === "Drag a point."`);
    assert.match(await page.evaluate("document.getElementById('graph').textContent"), /^mul\n├ 10\n└ sub\n {2}├ y\n {2}└ pow\n {4}├ x\n {4}└ 2\n\nsub\n├ 1\n└ x$/);
    const points = async () => Object.fromEntries([...(await page.evaluate("document.getElementById('points').textContent")).matchAll(/(\w) \((\S+), (\S+)\)/g)].map(([, name, x, y]) => [name, [Number(x), Number(y)]]));
    const far = ([x, y], [u, v]) => Math.hypot(x - u, y - v);
    const holds = ({ a, b, c, d }) => [[far(a, [-2, 0]), 0], [far(d, [1.5, 0]), 0], [far(a, b), 1.4], [far(b, c), 3], [far(c, d), 2]]
      .forEach(([found, expected]) => assert.ok(Math.abs(found - expected) < 3e-3, `${found}, ${expected} expected`));
    const before = await points();
    holds(before);
    const box = await page.evaluate("document.getElementById('sketch').scrollIntoView(); JSON.parse(JSON.stringify(document.getElementById('sketch').getBoundingClientRect()))");
    const at = ([x, y]) => [box.x + (x / 8 + 0.5) * box.width, box.y + (0.5 - y / 8) * box.height];
    await page.mouse("mousePressed", ...at(before.b));
    const to = [-2 + 1.4 * Math.cos(2.2), 1.4 * Math.sin(2.2)];
    for (let k = 1; k <= 5; ++k) await page.mouse("mouseMoved", ...at(before.b.map((x, c) => x + (k / 5) * (to[c] - x))));
    await page.mouse("mouseReleased", ...at(to));
    await page.until(`document.getElementById('sketch-note').className === "verdict good"`);
    const dragged = await points();
    holds(dragged);
    assert.ok(far(dragged.b, to) < 0.3 && far(dragged.b, before.b) > 0.1, JSON.stringify(dragged));
    await page.evaluate("document.getElementById('sketch').focus()");
    await page.key("ArrowDown");
    const moved = await points();
    holds(moved);
    assert.ok(far(moved.b, dragged.b) > 0.01, JSON.stringify(moved));
    for (const [text, expected] of [["ax +", /the end of the expression/], ["ax + q", /name q \[residual\]: expected one of ax, ay$/], ["3", /One to 10 points/]]) {
      await page.evaluate(`{ const t = document.getElementById('sketched'); t.value = ${JSON.stringify(text)}; t.dispatchEvent(new Event('input')); }`);
      assert.match(await page.evaluate(note), expected);
    }
    holds(await points());
    await page.evaluate("{ const t = document.getElementById('sketched'); t.value = 'ax\\nay\\nhypot(bx - ax, by - ay) - 1\\nbx - 2\\nby'; t.dispatchEvent(new Event('input')); }");
    await page.until(`/^No places of the points make all expressions zero: the worst is 0\\.333/.test(${note})`);
  }));

const texts = drops / 10;  // each is compiled and drawn
test(`residuals: ${texts} damaged expressions never break the page`, (t) =>
  visit("residuals.html", { width: 640 }, async (page) => {
    await page.until(`${verdict}.startsWith("Drag")`);
    const count = await page.evaluate(`(async () => {
      let seed = 7;
      const random = (n) => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return Math.floor(seed / 4294967296 * n); };
      const area = document.getElementById("text"), verdict = document.getElementById("verdict"), count = { read: 0, refused: 0 };
      const clean = ["10*(y - x^2)\\n1 - x", "sin(x*y)", "sqrt(x^2 + y^2) - 2\\nx", "exp(-x) - y\\nlog(1 + y^2)"];
      const pieces = ["(", ")", "1e999", "^", "^-2", "*", "/0", "x", "y", "q", "sin(", ",", "\\n", "\\0", "\u{1f600}", "--", "0.1.2", "pow(x,y)", " "];
      for (let n = 0; n < ${texts}; ++n) {
        let text = [...clean[random(clean.length)]];
        for (let times = random(4); times > 0; --times) {
          const at = random(text.length + 1), how = random(3);
          if (how === 0) text.splice(at, random(4));
          else if (how === 1) text.splice(at, 0, ...pieces[random(pieces.length)]);
          else text.splice(at, 0, ...text.slice(random(text.length + 1), random(text.length + 1)));
        }
        area.value = text.join("");
        area.dispatchEvent(new Event("input"));
        await new Promise((resume) => setTimeout(resume, 0));
        const { className, textContent } = verdict;
        if (!textContent || /stopped|internal|undefined|TypeError|not a function|while the core/i.test(textContent)) throw new Error(JSON.stringify(area.value) + ": " + textContent);
        count[className.includes("bad") ? "refused" : "read"]++;
      }
      return count;
    })()`);
    t.diagnostic(JSON.stringify(count));
    assert.ok(count.read > texts / 20 && count.refused > texts / 20, JSON.stringify(count));
    await page.evaluate("{ const t = document.getElementById('text'); t.value = 'x - 2\\ny + 1'; t.dispatchEvent(new Event('input')); }");
    await page.until("document.getElementById('minimum').textContent.includes('to (2.00000, -1.00000)')");
  }));

test("residuals on a dark phone", () =>
  visit("residuals.html", { width: 390, height: 844, dark: true, phone: true }, (page) => page.until("document.getElementById('minimum').textContent")));

const addresses = ["index.html", "meshes.html", "city.html?device=cpu&example=96", "turbulence.html?device=cpu&points=128", "equal.html", "residuals.html"];
test("pages are accessible", { skip: process.env.AXE ? false : "axe-core is not installed (scripts/fetch_python_peers.sh)" }, async () => {
  const script = await readFile(process.env.AXE, "utf8");
  for (const address of addresses)
    for (const dark of [false, true])
      await visit(address, { dark }, async (page) => {
        await page.until(address === "index.html" ? "document.readyState === 'complete'" : `!/^Loading|^$/.test(${verdict})`);
        await page.evaluate(script + ";0");
        const found = await page.evaluate(`axe.run().then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact))
          .map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" | ")))`);
        assert.deepEqual(found, [], `${address}${dark ? ", dark" : ""}`);
      });
});
