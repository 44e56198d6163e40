// Devices, buffers and launches. Launches return at once; what waits is a promise, so that devices that work concurrently with the page fit in.
import { countOf, elements as arrays } from "./arrays.js";
import { InputError } from "./errors.js";
import { elementTypes, Kernel } from "./kernel.js";
import { elementsFrom, numberFor } from "./numbers.js";

function shapeOf(shape, where, most) {
  const sizes = typeof shape === "number" ? [shape] : Array.isArray(shape) ? shape : Array.from(shape ?? []);
  if (sizes.length < 1 || sizes.length > most || !sizes.every((size) => Number.isSafeInteger(size) && size >= 0))
    throw new InputError(`shape ${sizes.map(String).join(" x ") || "of no axes"}`, where, `1 to ${most} whole numbers, slowest axis first`);
  return sizes;
}

/** A typed array on a device. End it with dispose(); one that is forgotten ends when the page's garbage is collected. */
export class Buffer {
  #core;
  constructor(core, device, type, shape) {
    if (!elementTypes.includes(type)) throw new InputError(`element type ${String(type)}`, "device.array", elementTypes.join(", "));
    this.#core = core;
    this.device = device;
    this.type = type;
    this.shape = shapeOf(shape, "device.array", 4);
    const { handle, bytes } = core.call("allocate", { device: device.handle, type, shape: this.shape });
    this.handle = handle;
    this.bytes = bytes;
    core.watch(this, "free", { buffer: handle });
  }
  get elements() {
    return countOf(this.shape);
  }
  _isOf(core) {
    return this.#core === core;
  }

  /** Host to device: a typed array of this element type (f16 and bf16: their words), or numbers. */
  upload(data) {
    const Elements = arrays[this.type];
    if (ArrayBuffer.isView(data) && data.constructor !== Elements)
      throw new InputError(data.constructor.name, `upload to a buffer of ${this.type}`, Elements.name);
    if (!ArrayBuffer.isView(data) && !Array.isArray(data)) throw new InputError(typeof data, `upload to a buffer of ${this.type}`, `${Elements.name} or an array`);
    const elements = ArrayBuffer.isView(data) ? data : elementsFrom(Elements, this.type, data, `upload to a buffer of ${this.type}`);
    if (elements.length !== this.elements)
      throw new InputError(`${elements.length} elements`, `upload to a buffer of ${this.shape.join(" x ")}`, `${this.elements} elements`);
    const given = new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
    this.#core.withBytes(given, (address, bytes) => this.#core.call("write", { device: this.device.handle, buffer: this.handle, address, bytes }));
    return this;
  }
  /** Device to host, after the work before it. */
  async download() {
    const request = { device: this.device.handle, buffer: this.handle };
    const bytes = this.device.waits
      ? await this.#core.callWaiting("read", request, this.bytes)
      : this.#core.withMemory(this.bytes, (address) => {
        this.#core.call("read", { ...request, address, bytes: this.bytes });
        return this.#core.bytes(address, this.bytes).slice();
      });
    return new arrays[this.type](bytes.buffer);
  }
  dispose() {
    this.#core.unwatch(this, "free", { buffer: this.handle });
  }
}

/** A device of this page. Made by lockstep.open. */
export class Device {
  #core;
  constructor(core, { handle, ...info }) {
    this.#core = core;
    this.handle = handle;
    /** name, kind, description, architecture, limits; refused: devices that were asked for first, with the reasons. */
    this.info = info;
    /** Whether results arrive later than calls return: what gives them is to be awaited before the next call. */
    this.waits = info.kind === "webgpu";
    core.watch(this, "close", { device: handle });
  }
  /** A buffer of zeros, or of `data`. Sizes slowest axis first. */
  array(type, shape, data) {
    const buffer = new Buffer(this.#core, this, type, shape);
    return data === undefined ? buffer : buffer.upload(data);
  }

  #argument(kernel, { name, kind, type }, value) {
    const where = `kernel ${kernel.name}, argument ${name}`;
    if (kind === "scalar") return numberFor(type, value, () => where);
    return this.#handleOf(value, where);
  }
  #handleOf(buffer, where) {
    if (!(buffer instanceof Buffer)) throw new InputError(`${buffer === null ? "null" : typeof buffer}`, where, "a buffer: device.array(…)");
    if (!buffer._isOf(this.#core)) throw new InputError("a buffer of another load()", where, "a buffer of this core");
    return buffer.handle;
  }
  /** Runs a kernel over a domain (points, or groups), slowest axis first. Arguments in the order of its parameters, or one object
   * with their names. Returns before the work is done. */
  launch(kernel, extent, ...given) {
    if (!(kernel instanceof Kernel)) throw new InputError("no kernel", "device.launch", "what lockstep.kernel gives");
    if (!kernel._isOf(this.#core)) throw new InputError(`kernel ${kernel.name} of another load()`, "device.launch", "a kernel of this core");
    const named = given.length === 1 && Object.getPrototypeOf(given[0] ?? 0) === Object.prototype;
    if (named)
      for (const name of Object.keys(given[0]))
        if (!kernel.parameters.some((p) => p.name === name))
          throw new InputError(`argument ${name}`, `kernel ${kernel.name}`, kernel.parameters.map((p) => p.name).join(", "));
    if (!named && given.length !== kernel.parameters.length)
      throw new InputError(`${given.length} arguments`, `kernel ${kernel.name}`, kernel.parameters.map((p) => p.name).join(", "));
    const values = kernel.parameters.map((p, k) => this.#argument(kernel, p, named ? given[0][p.name] : given[k]));
    this.#core.call("launch", { device: this.handle, kernel: kernel.handle, extent: shapeOf(extent, `kernel ${kernel.name}`, 3), arguments: values });
  }
  /** A call about this device, which it may make wait. */
  async _ask(name, request = {}) {
    const whole = { ...request, device: this.handle };
    return this.waits ? this.#core.callWaiting(name, whole) : this.#core.call(name, whole);
  }
  /** Compiles ahead of the first launch. */
  async prepare(kernel) {
    if (!(kernel instanceof Kernel && kernel._isOf(this.#core))) throw new InputError("no kernel", "device.prepare", "a kernel of this core");
    await this._ask("prepare", { kernel: kernel.handle });
  }
  /** Waits for the work so far; what failed in it is thrown. */
  async synchronize() {
    await this._ask("synchronize");
  }

  copy(from, to) {
    this.#core.call("copy", { device: this.handle, from: this.#handleOf(from, "device.copy"), to: this.#handleOf(to, "device.copy") });
  }
  clear(buffer) {
    this.#core.call("clear", { device: this.handle, buffer: this.#handleOf(buffer, "device.clear") });
  }

  async #reduce(how, x, y) {
    const where = `device.${how}`, buffer = this.#handleOf(x, where), other = y === undefined ? {} : { other: this.#handleOf(y, where) };
    const result = this.array(x.type, [1]);
    try {
      this.#core.call("reduce", { device: this.handle, how, buffer, result: result.handle, ...other });
      return (await result.download())[0];
    } finally {
      result.dispose();
    }
  }
  /** Sum of all elements by the fixed tree that every device uses; f32, f64, i32 or u32. */
  sum(x) { return this.#reduce("sum", x); }
  min(x) { return this.#reduce("min", x); }
  max(x) { return this.#reduce("max", x); }
  dot(x, y) { return this.#reduce("dot", x, y ?? null); }
  norm(x) { return this.#reduce("norm", x); }

  /** Counts of the device's work. */
  counters() {
    return this.#core.call("counters", { device: this.handle });
  }
  dispose() {
    this.#core.unwatch(this, "close", { device: this.handle });
  }
}
