// The core as a WebAssembly module: loading, calls with a JSON object in and out, kernels as modules beside it.
import { errorOf, InputError, InternalError } from "./errors.js";
import { wasiImports } from "./wasi.js";

/** Bytes or a module of the core from what the caller named. */
async function compiled(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  const url = new URL(source);
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return WebAssembly.compile(await readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok)
    throw new InputError(`${url}: status ${response.status}`, "lockstep.load", "lockstep.wasm beside lockstep.js, or options.wasm");
  try {
    return await WebAssembly.compileStreaming(response.clone());
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;  // a host that serves .wasm under another type
    return WebAssembly.compile(await response.arrayBuffer());
  }
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

export class Core {
  #exports;
  #encoder = new TextEncoder();
  #decoder = new TextDecoder();
  #stopped = "";
  #free = [];  // entries of the table that released kernels left
  /** Functions of the traces that run now, innermost last, and what one of them threw. */
  #bodies = [];
  #thrown = [];

  static async load(source, print) {
    const module = await compiled(source);
    const core = new Core();
    const memory = () => core.#exports.memory;
    const { exports } = await WebAssembly.instantiate(module, {
      wasi_snapshot_preview1: wasiImports(module, memory, print),
      lockstep: {
        instantiate: (address, size, helper) => core.#instantiate(address, size, helper, print),
        release: (entry) => core.#release(entry),
        trace: (address, size) => core.#trace(address, size),
      },
    });
    core.#exports = exports;
    exports._initialize?.();
    return core;
  }

  /** Puts a kernel's module beside the core; its entry in the table of functions, or 0 where the engine refuses it. */
  #instantiate(address, size, helper, print) {
    const { memory, __indirect_function_table: table } = this.#exports;
    try {
      const bytes = new Uint8Array(memory.buffer, address, size).slice();
      const { kernel } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { core: { memory, fma: table.get(helper) } }).exports;
      const entry = this.#free.pop() ?? table.grow(1);
      table.set(entry, kernel);
      return entry;
    } catch (error) {
      print(`lockstep: ${error.message}`);
      return 0;
    }
  }
  #release(entry) {
    this.#exports.__indirect_function_table.set(entry, null);
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
      throw new InternalError(`the core stopped: ${this.#stopped}`, "lockstep.js", "a page that is loaded anew");
    }
  }

  /** Memory of the core while `use` runs. */
  withMemory(bytes, use) {
    const address = this.#enter(() => this.#exports.lockstep_allocate(Math.max(bytes, 1))) >>> 0;
    if (address === 0) throw errorOf({ kind: "device", what: `${bytes} bytes of memory`, where: "lockstep.js", expected: "less" });
    try {
      return use(address);
    } finally {
      if (!this.#stopped) this.#exports.lockstep_free(address);
    }
  }
  /** Bytes of the core's memory; good until the next call. */
  bytes(address, size) {
    return new Uint8Array(this.#exports.memory.buffer, address, size);
  }
  get memoryBytes() {
    return this.#exports.memory.buffer.byteLength;
  }
  get stopped() {
    return this.#stopped !== "";
  }

  /** One call; its result. Throws the error that the core answers. */
  call(name, request = {}) {
    const bytes = this.#encoder.encode(JSON.stringify({ call: name, ...request }));
    const answer = this.withMemory(bytes.length, (address) => {
      this.bytes(address, bytes.length).set(bytes);
      const size = this.#enter(() => this.#exports.lockstep_call(address, bytes.length));
      return JSON.parse(this.#text(this.#exports.lockstep_reply() >>> 0, size >>> 0));
    });
    if (answer.error) throw errorOf(answer.error);
    return answer.result;
  }
}
