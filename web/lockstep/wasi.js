// What the core's C library asks of its host: a clock, random numbers and somewhere to write lines. Everything else is refused, as a page has
// neither files nor an environment.

const success = 0, badDescriptor = 8, notSupported = 52;

/** The functions of `wasi_snapshot_preview1` that `module` imports. `memory` gives the core's memory, `print` takes a line. */
export function wasiImports(module, memory, print) {
  const view = () => new DataView(memory().buffer);
  const pending = { 1: "", 2: "" };
  const decoder = new TextDecoder();
  const known = {
    fd_write(descriptor, vectors, count, written) {
      if (!(descriptor in pending)) return badDescriptor;
      let bytes = 0;
      for (let k = 0; k < count; ++k) {
        const start = view().getUint32(vectors + 8 * k, true), size = view().getUint32(vectors + 8 * k + 4, true);
        pending[descriptor] += decoder.decode(new Uint8Array(memory().buffer, start, size).slice());
        bytes += size;
      }
      const lines = pending[descriptor].split("\n");
      pending[descriptor] = lines.pop();
      for (const line of lines) print(line);
      view().setUint32(written, bytes, true);
      return success;
    },
    clock_time_get(_clock, _precision, time) {
      view().setBigUint64(time, BigInt(Math.round(performance.now() * 1e6)), true);
      return success;
    },
    random_get(address, size) {
      // 65,536 bytes at a time, as the browser's function takes them.
      const bytes = new Uint8Array(size);
      for (let at = 0; at < size; at += 65536) globalThis.crypto.getRandomValues(bytes.subarray(at, at + 65536));
      new Uint8Array(memory().buffer, address, size).set(bytes);
      return success;
    },
    environ_sizes_get(count, bytes) {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return success;
    },
    environ_get: () => success,
    fd_close: () => badDescriptor,
    fd_prestat_get: () => badDescriptor,
    proc_exit(code) {
      throw new Error(`the core ended with code ${code}`);
    },
  };
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module))
    if (from === "wasi_snapshot_preview1") imports[name] = known[name] ?? (() => notSupported);
  return imports;
}
