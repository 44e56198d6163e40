// web/serve sends what makes a page cross-origin isolated, and refuses what it cannot serve; the browser of the tests ends with an error.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Browser } from "./browser.mjs";
import { site } from "./site.mjs";

const program = fileURLToPath(new URL("../../web/serve", import.meta.url)), folder = fileURLToPath(site);

test("files of the site with both headers and their types", async () => {
  const server = spawn(program, [folder, "0"], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    const address = await new Promise((found, failed) => server.once("error", failed).stdout.once("data", (line) => found(String(line).trim())));
    for (const [path, type] of [["index.html", "text/html"], ["lockstep/worker.js", "text/javascript"], ["lockstep/lockstep.wasm", "application/wasm"]]) {
      const { status, headers } = await fetch(address + path, { method: "HEAD" });
      assert.equal(status, 200);
      assert.equal(headers.get("content-type").split(";")[0], type);
      assert.equal(headers.get("cross-origin-opener-policy"), "same-origin");
      assert.equal(headers.get("cross-origin-embedder-policy"), "require-corp");
    }
    assert.equal((await fetch(`${address}../../etc/passwd`)).status, 404);
  } finally {
    server.kill();
  }
});

test("a folder without pages and ports that are none", () => {
  for (const [given, expected] of [[["/nowhere"], /\/nowhere has no index\.html: expected a site/], [[folder, "65536"], /65536: expected a folder and a port/],
    [[folder, "x"], /expected a folder and a port/], [[folder, "0", "more"], /expected a folder and a port/]]) {
    const { status, stderr } = spawnSync(program, given, { encoding: "utf8" });
    assert.equal(status, 2);
    assert.match(stderr, /^web\/serve: /);
    assert.match(stderr, expected);
  }
});

test("a browser that ends fails what waits for it", { timeout: 60_000 }, async () => {
  const browser = await Browser.start("false");
  await assert.rejects(browser.page(), /ended/);
  await assert.rejects(browser.page(), /ended/);
  await browser.close();
});
