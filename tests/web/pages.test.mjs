// The pages in a real Chromium: they load under their policy, ask nobody else for anything, and show what the core computed.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { Browser, serve } from "./browser.mjs";
import { site } from "./site.mjs";

let browser, server;
before(async () => {
  browser = await Browser.start(process.env.WEB_BROWSER);
  server = await serve(site);
});
after(async () => {
  await browser.close();
  server.close();
});

/** Opens a page, waits, runs `look`, and checks that nothing went wrong on the way. */
async function visit(path, options, look, from = server) {
  const page = await browser.page(options);
  try {
    await page.open(`${from.origin}/${path}`);
    await look(page);
    assert.deepEqual(page.errors, []);
    const elsewhere = page.addresses.filter((address) => !address.startsWith(`${from.origin}/`) && !address.startsWith("data:"));
    assert.deepEqual(elsewhere, [], "requests that leave the origin");
    assert.ok(page.addresses.length > 0);
    const width = await page.evaluate("document.scrollingElement.scrollWidth");
    assert.ok(width <= (options.width ?? 1100), `${width} pixels wide`);
    const name = `${path.replace(/\W+/g, "_")}${options.phone ? "_phone" : ""}${options.dark ? "_dark" : ""}.png`;
    if (process.env.WEB_SCREENSHOTS && from === server) {
      await mkdir(process.env.WEB_SCREENSHOTS, { recursive: true });
      await writeFile(`${process.env.WEB_SCREENSHOTS}/${name}`, await page.screenshot());
    }
  } finally {
    await page.close();
  }
}
const verdict = "document.getElementById('verdict').textContent";
const rows = (kind) => `document.querySelectorAll('#rows tr[data-verdict="${kind}"]').length`;

test("the first page leads to the others", () =>
  visit("index.html", {}, async (page) => {
    const links = await page.until("document.querySelectorAll('main a').length > 1 && [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))");
    assert.deepEqual(links, ["equal.html", "residuals.html"]);
    for (const link of links) assert.ok((await readFile(new URL(link, site), "utf8")).includes("Content-Security-Policy"));
  }));

test("equal bits: every problem of the engine, by address", async (t) => {
  await visit("equal.html?cases=engine.", {}, async (page) => {
    await page.until(`/^(Equal|Nothing)|differ/.test(${verdict})`, 300);
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
  const names = Object.keys(stored.digests).filter((name) => name.startsWith("engine."));
  stored.digests[names[3]] = stored.digests[names[3]].replace(/^./, (digit) => (digit === "0" ? "1" : "0"));
  delete stored.digests[names[5]];
  const wrong = await serve(site, new Map([["/digests.json", JSON.stringify(stored)]]));
  try {
    await visit("equal.html?cases=engine.", {}, async (page) => {
      await page.until(`/^(Equal|Nothing)|differ/.test(${verdict})`, 300);
      assert.match(await page.evaluate(verdict), /^1 of \d+ problems differ from the native program\. \d+ could not be compared/);
      assert.equal(await page.evaluate(rows("different")), 1);
      assert.equal(await page.evaluate(rows("no native result")), 1);
    }, wrong);
  } finally {
    wrong.close();
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

test("residuals on a dark phone", () =>
  visit("residuals.html", { width: 390, height: 844, dark: true, phone: true }, (page) => page.until("document.getElementById('minimum').textContent")));
