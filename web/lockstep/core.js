// The core as a WebAssembly module: loading, calls with a JSON object in and out, kernels as modules next to it.
import { fuses } from "./engine.js";
import { errorOf, InputError, InternalError } from "./errors.js";
import { sharedMemory, Threads, usableThreads, withSharedMemory } from "./threads.js";
import { wasiImports } from "./wasi.js";
import { gpuImports } from "./webgpu.js";

/** The module from what the caller named; `shared`: with a memory that workers share. */
async function compiled(source, shared) {
  if (source instanceof WebAssembly.Module) return source;
  const compile = (bytes) => WebAssembly.compile(shared ? withSharedMemory(bytes) : bytes);
  if (source instanceof ArrayBuffer) return compile(new Uint8Array(source));
  if (ArrayBuffer.isView(source)) return compile(new Uint8Array(source.buffer, source.byteOffset, source.byteLength));
  const url = new URL(source);
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return compile(new Uint8Array(await readFile(url)));
  }
  const response = await fetch(url);
  if (!response.ok)
    throw new InputError(`${url}: status ${response.status}`, "lockstep.load", "lockstep.wasm next to lockstep.js, or options.wasm");
  if (shared) return compile(new Uint8Array(await response.arrayBuffer()));
  try {
    return await WebAssembly.compileStreaming(response.clone());
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;  // a host that serves .wasm under another type
    return WebAssembly.compile(await response.arrayBuffer());
  }
}

/** How many threads kernels get, and why it is one. */
async function threadsFor(source, wanted) {
  if (wanted !== undefined && !(Number.isInteger(wanted) && wanted >= 1 && wanted <= 64))
    throw new InputError(`threads ${String(wanted)}`, "lockstep.load", "a whole number from 1 to 64");
  if (wanted === 1) return { count: 1, reason: "one was asked for" };
  if (source instanceof WebAssembly.Module) return { count: 1, reason: "the core was given as a compiled module" };
  const usable = await usableThreads();
  return usable.reason || wanted === undefined ? usable : { count: wanted, reason: "" };
}

/** The first line of the call stack that is not of this folder: [file, line]. */
const folder = new URL(".", import.meta.url).href;
export function authorsLine() {
  const limit = Error.stackTraceLimit;  // of engines that have one
  Error.stackTraceLimit = 40;
  const { stack } = new Error();
  Error.stackTraceLimit = limit;
  for (const line of stack.split("\n")) {
    const found = /(?:\(|@|at )((?:file|https?|blob|node|data):[^\s()]*?):(\d+):\d+\)?$/.exec(line);
    if (found && !found[1].startsWith(folder)) return [found[1].replace(/[?#].*$/, ""), Number(found[2])];
  }
  return undefined;
}
/** The same as text, for messages. */
export function authorsPlace() {
  const line = authorsLine();
  return line ? `${line[0].slice(line[0].lastIndexOf("/") + 1)}:${line[1]}` : "lockstep.js";
}

/** Lets the page draw. */
export const pause = () => new Promise((resume) => setTimeout(resume, 0));

const suspending = (work) => (typeof WebAssembly.Suspending === "function" ? new WebAssembly.Suspending(work) : () => 0);

export class Core {
  #exports;
  #encoder = new TextEncoder();
  #decoder = new TextDecoder();
  #stopped = "";
  #suspendable;  // lockstep_call, for calls that may wait for a device
  #mayWait = false;
  /** Calls that wait run one after the other; of those that were made, how many have not ended. */
  #last = Promise.resolve();
  #waiting = 0;
  #whenIdle = [];
  #free = [];  // entries of the table that released kernels left
  #kernels = new Map();  // by entry: number, and where the module's bytes are, for workers
  #numbers = 0;
  #threads;  // none where there is one thread
  /** Functions of the traces that run now, innermost last, and what one of them threw. */
  #bodies = [];
  #thrown = [];

  static async load(source, print, { threads, fused = true } = {}) {
    const core = new Core();
    core.print = print;
    core.threads = await threadsFor(source, threads);
    const { count } = core.threads, pages = 256;  // wasm-ld's --initial-memory
    const module = await compiled(source, count > 1);
    const memoryOfCore = count > 1 ? sharedMemory(pages) : new WebAssembly.Memory({ initial: pages, maximum: 65536 });
    if (count > 1) core.#threads = new Threads(memoryOfCore, count, print);
    const memory = () => core.#exports.memory;
    const { exports } = await WebAssembly.instantiate(module, {
      env: { memory: memoryOfCore },
      wasi_snapshot_preview1: wasiImports(module, memory, print),
      lockstep: {
        fuses: () => (fused && fuses() ? 1 : 0),
        threads: () => count,
        instantiate: (address, size, helper) => core.#instantiate(address, size, helper, print),
        run: (entry, ...launch) => core.#threads.run(exports.__indirect_function_table.get(entry), core.#kernels.get(entry), ...launch),
        release: (entry) => core.#release(entry),
        trace: (address, size) => core.#trace(address, size),
        frame: (...state) => (core.#show(...state) ? 1 : 0),
        draw: suspending(async (...state) => {
          core.#show(...state);
          await pause();
          return core.#stopping ? 0 : 1;
        }),
        ...gpuImports({
          bytes: (address, size) => core.bytes(address >>> 0, size),
          text: (address, size) => core.#text(address >>> 0, size),
          mayWait: () => core.#mayWait,
          report: (device, type, message) => core.#report(device, type, message),
        }),
      },
    });
    core.#exports = exports;
    core.#suspendable = WebAssembly.promising?.(exports.lockstep_call);
    exports._initialize?.();
    return core;
  }

  /** Adds a kernel's module to the core; its entry in the table of functions, or 0 where the engine rejects it. */
  #instantiate(address, size, helper, print) {
    const { memory, __indirect_function_table: table } = this.#exports;
    try {
      const bytes = new Uint8Array(memory.buffer, address, size).slice();
      const { kernel } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { core: { memory, fma: table.get(helper) } }).exports;
      const entry = this.#free.pop() ?? table.grow(1);
      table.set(entry, kernel);
      this.#kernels.set(entry, { number: ++this.#numbers, code: address, size });
      return entry;
    } catch (error) {
      print(`lockstep: ${error.message}`);
      return 0;
    }
  }
  #release(entry) {
    this.#exports.__indirect_function_table.set(entry, null);
    this.#kernels.delete(entry);
    this.#free.push(entry);
  }

  /** The core calls the function whose kernel it traces. Nothing is thrown through the core's own frames. */
  #trace(address, size) {
    const handles = JSON.parse(this.#text(address, size));
    try {
      this.#bodies.at(-1)(handles);
      return 1;
    } catch (error) {
      this.#thrown.push(error);
      return 0;
    }
  }
  trace(request, body) {
    this.#bodies.push(body);
    try {
      const answer = this.call("trace", request);
      if (answer.failed) throw this.#thrown.pop();
      return answer;
    } finally {
      this.#bodies.pop();
    }
  }

  /** The page's function for the states of a running minimisation; false from it ends that. */
  #onFrame;
  #stopping = false;
  #show(address, count, iterations, cost) {
    const positions = new Float32Array(this.bytes(address >>> 0, 12 * count).slice().buffer);
    try {
      this.#stopping = this.#onFrame?.({ positions, iterations, cost }) === false;
    } catch (error) {
      this.#thrown.push(error);
      this.#stopping = true;
    }
    return !this.#stopping;
  }
  /** Ends the running minimisation at its next state. */
  stop() {
    this.#stopping = true;
  }

  #text(address, size) {
    return this.#decoder.decode(new Uint8Array(this.#exports.memory.buffer, address, size).slice());
  }

  /** Runs what enters the core. After a trap its memory is in no known state: it takes no more calls. */
  #enter(work) {
    if (this.#stopped) throw new InternalError(`the core stopped: ${this.#stopped}`, "lockstep.js", "a page that is loaded anew");
    try {
      return work();
    } catch (error) {
      this.#stopped = String(error?.message ?? error);
      throw Object.assign(new InternalError(`the core stopped: ${this.#stopped}`, "lockstep.js", "a page that is loaded anew"), { cause: error });
    }
  }

  #allocate(bytes) {
    const address = this.#enter(() => this.#exports.lockstep_allocate(Math.max(bytes, 1))) >>> 0;
    if (address === 0) throw errorOf({ kind: "device", what: `${bytes} bytes of memory`, where: "lockstep.js", expected: "less" });
    return address;
  }
  #deallocate(address) {
    if (!this.#stopped) this.#exports.lockstep_free(address);
  }
  /** Memory of the core while `use` runs. */
  withMemory(bytes, use) {
    const address = this.#allocate(bytes);
    try {
      return use(address);
    } finally {
      this.#deallocate(address);
    }
  }
  /** Memory that holds `given` while `use` runs, which gets its address and size. */
  withBytes(given, use) {
    return this.withMemory(given.length, (address) => {
      this.bytes(address, given.length).set(given);
      return use(address, given.length);
    });
  }
  /** Bytes of the core's memory; good until the next call. */
  bytes(address, size) {
    return new Uint8Array(this.#exports.memory.buffer, address, size);
  }
  /** The core notes what a device reports, also while it is suspended. */
  #report(device, type, message) {
    if (this.#stopped || !this.#exports.lockstep_gpu_report) return;
    this.withBytes(this.#encoder.encode(message), (address, size) => this.#enter(() => this.#exports.lockstep_gpu_report(device, type, address, size)));
  }
  get memoryBytes() {
    return this.#exports.memory.buffer.byteLength;
  }
  /** Threads that take part by now, why there is one, and how many parts of launches workers ran. */
  async threadsReady() {
    await this.#threads?.ready();
    return { ...this.threads, byWorkers: this.#threads?.byWorkers ?? 0 };
  }
  /** Ends the workers; the core takes no more calls. */
  end() {
    this.#threads?.end();
    this.#stopped ||= "lockstep.close()";
  }
  get stopped() {
    return this.#stopped !== "";
  }

  #request(name, request) {
    // JSON has no NaN and no infinity: they would arrive as null, which means that nothing was given.
    const finite = (key, value) => {
      if (typeof value === "number" && !Number.isFinite(value)) throw new InputError(`${key} = ${value}`, name, "a finite number");
      return value;
    };
    return this.#encoder.encode(JSON.stringify({ call: name, ...request }, finite));
  }
  #answer(size) {
    const answer = JSON.parse(this.#text(this.#exports.lockstep_reply() >>> 0, size >>> 0));
    if (answer.error) throw errorOf(answer.error);
    return answer.result;
  }

  /** One call; its result. Throws the error that the core answers. */
  call(name, request = {}) {
    if (this.#waiting > 0)
      throw new InputError(`${name} while the core waits for a device`, authorsPlace(), "a page that awaits each promise of that device before it goes on");
    return this.withBytes(this.#request(name, request), (address, size) => this.#answer(this.#enter(() => this.#exports.lockstep_call(address, size))));
  }
  /** The same for calls that may wait for a device: the core is suspended meanwhile, and takes no other call. With `room`, the
   * call fills as many bytes, and they are the result. */
  callWaiting(name, request = {}, room = 0, onFrame = undefined) {
    ++this.#waiting;
    const called = this.#last.then(async () => {
      let filled = 0, address = 0;
      try {
        if (room) filled = this.#allocate(room);
        const bytes = this.#request(name, room ? { ...request, address: filled, bytes: room } : request);
        address = this.#allocate(bytes.length);
        this.bytes(address, bytes.length).set(bytes);
        this.#mayWait = this.#suspendable !== undefined;
        this.#onFrame = onFrame;
        this.#stopping = false;
        const size = await (this.#suspendable ?? this.#exports.lockstep_call)(address, bytes.length);
        if (onFrame && this.#thrown.length) throw this.#thrown.pop();
        const result = this.#answer(size);
        return room ? this.bytes(filled, room).slice() : result;
      } catch (error) {
        if (error instanceof WebAssembly.RuntimeError) this.#enter(() => { throw error; });
        throw error;
      } finally {
        this.#mayWait = false;
        for (const taken of [address, filled]) if (taken) this.#deallocate(taken);
        if (--this.#waiting === 0) for (const work of this.#whenIdle.splice(0)) work();
      }
    });
    this.#last = called.catch(() => {});
    return called;
  }
  /** Work that must not come between: now, or when the core waits no more. */
  whenIdle(work) {
    if (this.#waiting > 0) this.#whenIdle.push(work);
    else work();
  }
}
