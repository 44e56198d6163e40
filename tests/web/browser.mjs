// A headless Chromium over its debugging pipe, and a static server that records what is asked of it.
import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
  ".svg": "image/svg+xml", ".wasm": "application/wasm" };

/** Serves a folder on 127.0.0.1. `replace` gives other contents for some paths; `isolated`: with the headers of web/serve. */
export async function serve(folder, replace = new Map(), isolated = false) {
  const asked = [];
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    asked.push(path);
    try {
      const body = replace.get(path) ?? (await readFile(join(fileURLToPath(folder), path === "/" ? "index.html" : path)));
      response.writeHead(200, {
        "content-type": types[extname(path === "/" ? ".html" : path)] ?? "application/octet-stream",
        ...(isolated && { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" }),
      });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return { origin: `http://127.0.0.1:${server.address().port}`, asked, close: () => server.close() };
}

/** Seconds after which something that a test waits for counts as missing: no machine is so slow. */
export const patience = 900;

/** Flags of a browser with WebGPU in software; compiling there may take long on a busy machine. */
export const webgpu = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--disable-gpu-watchdog"];

/** One browser; pages are sessions of the DevTools protocol. */
export class Browser {
  #next = 1;
  #waiting = new Map();
  #events = new EventEmitter();
  #ended;

  /** `flags`: more than the usual ones. */
  static async start(program, flags = []) {
    const browser = new Browser();
    browser.profile = await mkdtemp(join(tmpdir(), "lockstep-browser-"));
    browser.process = spawn(program, [
      "--headless=new", "--no-sandbox", "--remote-debugging-pipe", `--user-data-dir=${browser.profile}`, "--no-first-run", "--disable-quic",
      "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu", "--hide-scrollbars", ...flags, "about:blank",
    ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    browser.process.stdio[3].on("error", () => {});  // the answer that does not come is rejected
    browser.#ended = new Promise((resolve) => browser.process.once("exit", resolve)).then(() => browser.#abandon());
    let pending = "";
    browser.process.stdio[4].on("data", (data) => {
      const parts = (pending + data).split("\0");
      pending = parts.pop();
      for (const part of parts) browser.#receive(JSON.parse(part));
    });
    return browser;
  }
  #receive({ id, result, error, method, params, sessionId }) {
    if (id) {
      const { resolve, reject } = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) reject(new Error(error.message));
      else resolve(result);
    } else {
      this.#events.emit(sessionId ?? "browser", method, params);
    }
  }
  /** Of a browser that ended nothing is waited for. */
  #abandon() {
    for (const { reject } of this.#waiting.values()) reject(new Error(`the browser ended: ${this.process.exitCode ?? this.process.signalCode}`));
    this.#waiting = { set: (id, { reject }) => reject(new Error("the browser has ended")) };
  }
  send(method, params = {}, sessionId = undefined) {
    const id = this.#next++;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }
  on(sessionId, listener) {
    this.#events.on(sessionId, listener);
  }
  async close() {
    await this.send("Browser.close").catch(() => {});
    await this.#ended;
    await rm(this.profile, { recursive: true, force: true });
  }

  /** A page of a window `width` wide; collects its errors and the addresses it asks for. */
  async page({ width = 1100, height = 900, dark = false, phone = false } = {}) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
    await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: phone });
    const features = [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: "reduce" }];
    await page.send("Emulation.setEmulatedMedia", { features });
    return page;
  }
}

class Page {
  errors = [];
  addresses = [];
  constructor(browser, session, target) {
    this.send = (method, params) => browser.send(method, params, session);
    this.close = () => browser.send("Target.closeTarget", { targetId: target });
    browser.on(session, (method, params) => {
      if (method === "Runtime.exceptionThrown") this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type))
        this.errors.push(params.args.map((a) => a.value ?? a.description).join(" "));
      if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) this.errors.push(params.entry.text);
      if (method === "Network.requestWillBeSent") this.addresses.push(params.request.url);
    });
  }
  async open(url) {
    await this.send("Page.navigate", { url });
  }
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  /** Waits until the expression is true; what it was last where it never is. */
  async until(expression) {
    for (const end = Date.now() + 1000 * patience; ; ) {
      const value = await this.evaluate(expression).catch(() => undefined);
      if (value) return value;
      if (Date.now() > end) throw new Error(`${expression} stayed ${value}: ${await this.evaluate("document.body.innerText.slice(0, 400)")}`);
      await new Promise((resume) => setTimeout(resume, 50));
    }
  }
  async key(key, code = key) {
    const virtual = { Tab: 9, Enter: 13, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 }[key];
    const event = { key, code, windowsVirtualKeyCode: virtual, ...(key === "Enter" && { text: "\r" }) };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...event });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }
  async mouse(type, x, y) {
    await this.send("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons: type === "mouseReleased" ? 0 : 1, clickCount: 1 });
  }
  async screenshot() {
    return Buffer.from((await this.send("Page.captureScreenshot", { format: "png" })).data, "base64");
  }
}
