// What tests of pages share: a browser, a server, and pages that are opened, looked at and left without an error.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { Browser, serve, webgpu } from "./browser.mjs";
import { site } from "./site.mjs";

/** Damaged files that a page is given: many in the long lane. */
export const drops = Number(process.env.WEB_DROPS ?? 1000);
export const text = (id) => `document.getElementById('${id}').textContent`;
export const choose = (id, value) => `{ const e = document.getElementById('${id}'); e.value = '${value}'; for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind)); }`;

/** A browser that refuses to store anything: no page of the site needs it. */
const refusedStorage = `for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"])
  Object.defineProperty(window, name, { get() { throw new DOMException("refused", "SecurityError"); } });
Object.defineProperty(Document.prototype, "cookie", { get() { throw new DOMException("refused", "SecurityError"); } });`;

/** Opens pages of the site: `visit(path, options, look, from)` runs `look` on one that is ready, and checks that nothing went wrong,
 * nobody else was asked, and nothing is wider than the window. options.name keeps a picture in WEB_SCREENSHOTS; from.browser and
 * from.server are used in place of its own. `ready`: what is true of a page that is; `excused`: addresses that are no request to
 * another host. */
export function visitor({ ready = "performance.getEntriesByName('ready').length > 0", excused = [] } = {}) {
  const own = {};
  before(async () => {
    own.browser = await Browser.start(process.env.WEB_BROWSER);
    own.server = await serve(site);
  });
  after(async () => {
    await own.browser.close();
    own.server.close();
  });
  return async (path, options, look, from = {}) => {
    const { browser, server } = { ...own, ...from }, page = await browser.page(options);
    try {
      await page.send("Page.addScriptToEvaluateOnNewDocument", { source: refusedStorage });
      await page.open(`${server.origin}/${path}`);
      await page.until(ready);
      await look(page);
      assert.deepEqual(page.errors, []);
      const elsewhere = page.addresses.filter((address) => ![`${server.origin}/`, ...excused].some((start) => address.startsWith(start)));
      assert.deepEqual(elsewhere, [], "requests that leave the origin");
      assert.ok(page.addresses.length > 0);
      const width = await page.evaluate("document.scrollingElement.scrollWidth");
      assert.ok(width <= (options.width ?? 1100), `${width} pixels wide`);
      if (process.env.WEB_SCREENSHOTS && options.name) {
        await mkdir(process.env.WEB_SCREENSHOTS, { recursive: true });
        await writeFile(`${process.env.WEB_SCREENSHOTS}/${options.name}.png`, await page.screenshot());
      }
    } finally {
      await page.close();
    }
  };
}

/** Downloads of the page stay in it: the last one's `saved.name` and `saved.blob`. */
export const keepDownloads = `window.saved = {}; URL.createObjectURL = (blob) => { saved.blob = blob; return "blob:"; }; HTMLAnchorElement.prototype.click = function () { saved.name = this.download; }`;
/** Graphics devices of the page are lost when they compile their first kernel. */
export const loseDevice = `{
  const request = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (...a) {
    const device = await request.apply(this, a), create = device.createComputePipeline;
    device.createComputePipeline = (...d) => { setTimeout(() => device.destroy(), 0); return create.apply(device, d); };
    return device;
  };
}`;
/** The browser has an adapter and refuses its devices. */
export const refuseDevice = `GPUAdapter.prototype.requestDevice = async () => { throw new DOMException("no device today", "OperationError"); };`;
/** The browser's compiler refuses every shader. */
export const breakShaders = `{
  const create = GPUDevice.prototype.createShaderModule;
  GPUDevice.prototype.createShaderModule = function (d) { return create.call(this, { ...d, code: d.code + "}" }); };
}`;
/** Runs `look` with a browser, for `from` of a visit, that has WebGPU in software. */
export async function withGpuBrowser(look) {
  const gpu = await Browser.start(process.env.WEB_BROWSER, webgpu);
  try {
    await look({ browser: gpu });
  } finally {
    await gpu.close();
  }
}

const dropped = `const given = async (name, bytes) => {
  const transfer = new DataTransfer(), before = Number(document.body.dataset.files ?? 0);
  transfer.items.add(new File([bytes], name));
  document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true, bubbles: true }));
  while (Number(document.body.dataset.files ?? 0) === before) await new Promise((go) => setTimeout(go, 0));
  return document.getElementById("verdict");
};`;
/** Drops a file whose bytes an expression gives; the verdict. */
export const drop = (name, bytes) => `(async () => { ${dropped} return (await given(${JSON.stringify(name)}, ${bytes})).textContent; })()`;

/** Files that are none: each is a sentence, and the page is as before. `bad`: [name, expression of its bytes, what is said]. */
export async function refuses(page, bad) {
  for (const [name, bytes, expected] of bad) {
    const said = await page.evaluate(drop(name, bytes));
    assert.match(said, expected, name);
    assert.equal(await page.evaluate("document.getElementById('verdict').className"), "verdict bad", name);
  }
  assert.equal(await page.evaluate("document.querySelectorAll('img').length"), 0);
}
/** A file of 2 GB with zeros, chosen by the page's own button: refused by its size, not read. */
export async function refusesHugeFile(page, name) {
  const folder = await mkdtemp(join(tmpdir(), "lockstep-huge-")), path = join(folder, name);
  try {
    await writeFile(path, "");
    await truncate(path, 2 ** 31);
    const { root } = await page.send("DOM.getDocument"), { nodeId } = await page.send("DOM.querySelector", { nodeId: root.nodeId, selector: "#file" });
    await page.send("DOM.setFileInputFiles", { nodeId, files: [path] });
    await page.until(`${text("verdict")} === ${JSON.stringify(`${name} has 2147 MB: this page takes files of up to 200 MB.`)}`);
  } finally {
    await rm(folder, { recursive: true });
  }
}
/** The browser puts the tab to sleep and wakes it. */
export async function sleeps(page) {
  for (const state of ["frozen", "active"]) {
    await page.send("Page.setWebLifecycleState", { state });
    await new Promise((go) => setTimeout(go, 200));
  }
  // Chromium may leave a tab that wakes up hidden, as behind another one.
  await page.send("Emulation.setFocusEmulationEnabled", { enabled: true });
}
/** Drops damaged copies of files, of which an expression gives [name, bytes]: how many were read and refused. */
export const damage = (page, files) => page.evaluate(`(async () => {
  ${dropped}
  let seed = 32;
  const random = (n) => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return Math.floor(seed / 4294967296 * n); };
  const text = (s) => new TextEncoder().encode(s), files = ${files}, count = { read: 0, refused: 0 };
  for (let n = 0; n < ${drops}; ++n) {
    const [name, clean] = files[random(files.length)];
    let damaged = [...(typeof clean === "string" ? text(clean) : clean)];
    for (let times = random(4); times > 0; --times) {
      const at = random(damaged.length + 1), how = random(5);
      if (how === 0) damaged[Math.min(at, damaged.length - 1)] = random(256);
      else if (how === 1) damaged.splice(at, random(20));
      else if (how === 2) damaged.splice(at, 0, ...damaged.slice(random(damaged.length), random(damaged.length)));
      else if (how === 3) damaged.splice(at, 0, ...text(["1e999", "-1", "nan", "99999999999", "\\0", " "][random(6)]));
      else if (random(4) === 0) damaged.length = at;
    }
    const { className, textContent } = await given(name, Uint8Array.from(damaged));
    if (!textContent || /stopped|internal|undefined|TypeError|not a function/i.test(textContent) || /\\bNaN\\b/.test(textContent)) throw new Error("file " + n + ", " + name + ": " + textContent);
    count[className.includes("bad") ? "refused" : "read"]++;
  }
  return count;
})()`);
