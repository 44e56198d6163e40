// The documentation site in a browser, opened from its folder: DOCS_SITE; AXE names axe-core's script where it is there.
import { strictEqual, deepStrictEqual, ok } from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser } from "./browser.mjs";

const folder = process.env.DOCS_SITE;
const url = (page) => pathToFileURL(join(folder, page)).href;
const pages = ["index.html", "README.html", "docs/tutorials/city.html", "docs/language.html", "docs/notebooks/city.html", "reference/cli/urban.html",
  "reference/python/lockstep.urban.html", "reference/cpp/device.html", "docs/performance.html", "search.html?q=flow"];
let browser;
before(async () => (browser = await Browser.start(process.env.WEB_BROWSER)));
after(() => browser?.close());

async function opened(page, options) {
  const tab = await browser.page(options);
  await tab.open(url(page.split("?")[0]) + (page.includes("?") ? page.slice(page.indexOf("?")) : ""));
  await tab.until(`document.readyState === "complete" && location.href.startsWith("${url(page.split("?")[0])}")`);
  return tab;
}

test("pages open without an error and ask for nothing outside of the folder", async () => {
  for (const page of pages) {
    const tab = await opened(page);
    await tab.until("document.querySelector('article').innerText.length > 2");
    deepStrictEqual(tab.errors, [], page);
    deepStrictEqual(tab.addresses.filter((a) => !a.startsWith("data:") && !a.startsWith(pathToFileURL(folder).href)), [], page);
    await tab.close();
  }
});

test("links between pages reach a file and, where they name one, an element", async () => {
  const names = (await readdir(folder, { recursive: true })).filter((n) => n.endsWith(".html"));
  const texts = new Map(await Promise.all(names.map(async (n) => [n, await readFile(join(folder, n), "utf8")])));
  const missing = [];
  for (const [name, text] of texts)
    for (const [, href] of text.matchAll(/<a [^>]*href="([^"]+)"/g)) {
      if (/^[a-z]+:/.test(href)) continue;
      const [path, anchor] = href.split("#");
      const target = path ? join(name, "..", decodeURIComponent(path)) : name;
      const page = texts.get(target);
      if (page === undefined ? !(await readFile(join(folder, target)).then(() => true, () => false)) : anchor && !page.includes(`id="${decodeURIComponent(anchor)}"`))
        missing.push(`${name}: ${href}`);
    }
  deepStrictEqual(missing, []);
  ok(names.length > 100);
});

test("the search finds a command and a function", async () => {
  for (const [words, found] of [["vorticity", "docs/flow.html"], ["shadows", "reference/python/lockstep.urban.html"]]) {
    const tab = await opened(`search.html?q=${words}`);
    await tab.until(`[...document.querySelectorAll("#search-results a")].some((a) => a.href.includes("${found}"))`);
    await tab.close();
  }
});

test("pages are accessible", { skip: process.env.AXE ? false : "axe-core is not installed (scripts/fetch_python_peers.sh)" }, async () => {
  const script = await readFile(process.env.AXE, "utf8");
  for (const page of pages)
    for (const dark of [false, true]) {
      const tab = await opened(page, { dark });
      await tab.evaluate(script + ";0");
      const found = await tab.evaluate(`axe.run().then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact))
        .map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" | ")))`);
      deepStrictEqual(found, [], `${page}${dark ? ", dark" : ""}`);
      await tab.close();
    }
});

test("a phone shows the text without scrolling sideways, whole headings and names of options on one line", async () => {
  for (const page of ["docs/tutorials/city.html", "reference/cpp/device.html", "reference/cli/urban.html"]) {
    const tab = await opened(page, { width: 390, height: 800, phone: true });
    strictEqual(await tab.evaluate("document.documentElement.scrollWidth <= 390"), true, page);
    const cut = await tab.evaluate(`[...document.querySelectorAll("h1, h2")].filter((h) => h.scrollWidth > h.clientWidth + 1).map((h) => h.innerText)`);
    deepStrictEqual(cut, [], page);
    const broken = await tab.evaluate(`[...document.querySelectorAll("td:first-child code")].filter((c) => c.getClientRects().length > 1).map((c) => c.innerText)`);
    deepStrictEqual(broken, [], page);
    await tab.close();
  }
});
