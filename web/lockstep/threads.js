// Launches over several threads: the page's own, and workers that run parts of kernels in the core's memory. A part is a box of points or
// groups; which thread runs it changes no bit.

/** Words that threads share: the launch that is open, its next part, how many workers are inside. */
const words = 16;
const [NUMBER, OPEN, NEXT, PARTS, INSIDE, FAILED, BY_WORKERS, KERNEL, CODE, SIZE, FRAME, BOXES, SCRATCH, EACH] = Array(words).keys();
const boxBytes = 24;
/** A page's own thread may not. */
const maySleep = globalThis.document === undefined;

/** Parts of the open launch until none is left; how many. */
function runParts(control, kernel, thread) {
  const scratch = control[SCRATCH] + thread * control[EACH];
  let done = 0;
  for (let part; (part = Atomics.add(control, NEXT, 1)) < control[PARTS]; ++done) kernel(control[FRAME], control[BOXES] + boxBytes * part, scratch);
  return done;
}

/** A worker's life. It keeps the kernels that it compiled last. */
export function serve({ memory, control, thread }, fma) {
  const kernels = new Map(), most = 256;
  const kernelOf = () => {
    const number = control[KERNEL];
    if (!kernels.has(number)) {
      const bytes = new Uint8Array(memory.buffer, control[CODE] >>> 0, control[SIZE]).slice();
      kernels.set(number, new WebAssembly.Instance(new WebAssembly.Module(bytes), { core: { memory, fma } }).exports.kernel);
      if (kernels.size > most) kernels.delete(kernels.keys().next().value);
    }
    return kernels.get(number);
  };
  for (let seen = 0; ; ) {
    Atomics.wait(control, NUMBER, seen);
    seen = Atomics.load(control, NUMBER);
    Atomics.add(control, INSIDE, 1);  // before the look at OPEN: the page closes a launch first and looks at INSIDE then
    try {
      if (Atomics.load(control, OPEN) === seen) Atomics.add(control, BY_WORKERS, runParts(control, kernelOf(), thread));
    } catch {
      Atomics.store(control, FAILED, 1);
    }
    if (Atomics.sub(control, INSIDE, 1) === 1) Atomics.notify(control, INSIDE);
  }
}

/** How many threads kernels run on unless the caller says so, and why it is one. */
export async function usableThreads() {
  const most = 8;
  if (globalThis.process?.versions?.node) return { count: Math.min((await import("node:os")).availableParallelism(), most), reason: "" };
  if (!globalThis.crossOriginIsolated) return { count: 1, reason: "the page is not cross-origin isolated" };
  return { count: Math.min(navigator.hardwareConcurrency || 1, most), reason: "" };
}

/** Memory that workers can reach, as large as the engine gives it. */
export function sharedMemory(pages) {
  for (let maximum = 65536; ; maximum /= 2)
    try {
      return new WebAssembly.Memory({ initial: pages, maximum, shared: true });
    } catch (error) {
      if (maximum <= 4096) throw error;
    }
}

/** The module with its imported memory, which has an upper limit, as a shared one. */
export function withSharedMemory(bytes) {
  let at = 8;
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      value |= (bytes[at] & 127) << shift;
      if (bytes[at++] < 128) return value;
    }
  };
  const skip = (size) => { at += size; };
  for (let section; at < bytes.length; ) {
    section = bytes[at++];
    const size = number(), imports = 2, functions = 0, memories = 2;
    if (section !== imports) {
      skip(size);
      continue;
    }
    // wasm-ld imports functions and memories only.
    for (let count = number(); count > 0; --count) {
      skip(number()), skip(number());  // module and name
      const kind = bytes[at++];
      if (kind === memories && bytes[at] === 1) {
        const shared = bytes.slice();
        shared[at] = 3;
        return shared;
      }
      if (kind !== functions) break;
      number();
    }
  }
  throw new TypeError("a module without an imported memory");
}

/** The workers of a core. */
export class Threads {
  #control = new Int32Array(new SharedArrayBuffer(4 * words));
  #workers = [];
  #ready = [];
  constructor(memory, count, print) {
    this.count = count;
    for (let thread = 1; thread < count; ++thread)
      this.#ready.push(this.#start({ memory, control: this.#control, thread }).catch((error) => print(`lockstep: a worker did not start: ${error.message ?? error}`)));
  }
  async #start(shared) {
    const address = new URL("worker.js", import.meta.url);
    if (globalThis.process?.versions?.node) {
      const { Worker } = await import("node:worker_threads"), worker = new Worker(address, { workerData: shared });
      this.#workers.push(worker);
      await new Promise((ready, failed) => worker.once("message", ready).once("error", failed));
      worker.unref();
    } else {
      const worker = new Worker(address, { type: "module" });
      this.#workers.push(worker);
      await new Promise((ready, failed) => {
        worker.onmessage = ready;
        worker.onerror = (event) => failed(new Error(event.message ?? "its file could not be loaded"));
        worker.postMessage(shared);
      });
    }
  }
  /** Resolved when every worker takes part or has failed. */
  ready() {
    return Promise.all(this.#ready);
  }
  /** Parts that workers ran. */
  get byWorkers() {
    return Atomics.load(this.#control, BY_WORKERS);
  }

  /** Runs the parts of one launch; returns when all are done. */
  run(kernel, { number, code, size }, frame, boxes, parts, scratch, each) {
    const control = this.#control;
    control.set([number, code, size, frame, boxes, scratch, each], KERNEL);
    control[PARTS] = parts;
    Atomics.store(control, NEXT, 0);
    const launch = (control[NUMBER] + 1) | 0 || 1;
    Atomics.store(control, OPEN, launch);
    Atomics.store(control, NUMBER, launch);
    Atomics.notify(control, NUMBER);
    try {
      runParts(control, kernel, 0);
    } finally {
      Atomics.store(control, OPEN, 0);
      for (let inside; (inside = Atomics.load(control, INSIDE)) > 0; ) if (maySleep) Atomics.wait(control, INSIDE, inside);
    }
    if (Atomics.load(control, FAILED)) throw new WebAssembly.RuntimeError("a kernel failed in a worker");
  }
  end() {
    for (const worker of this.#workers) worker.terminate();
  }
}
