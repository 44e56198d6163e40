// node run.mjs PROGRAM.wasm [ARGUMENTS]: runs a WASI program with kernels as modules beside it; its exit code is this one's.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";
import { fuses } from "../../web/lockstep/engine.js";

const wasi = new WASI({ version: "preview1", args: process.argv.slice(2), env: {}, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(process.argv[2]));
let core;
const free = [];
const lockstep = {
  fuses: () => (fuses() ? 1 : 0),
  threads: () => 1,
  instantiate(address, size, helper) {
    const { memory, __indirect_function_table: table } = core.exports;
    try {
      const fma = table.get(helper); // the export of a command would run the destructors
      const bytes = new Uint8Array(memory.buffer, address, size).slice();
      const { kernel } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { core: { memory, fma } }).exports;
      const place = free.pop() ?? table.grow(1);
      table.set(place, kernel);
      return place;
    } catch (error) {
      console.error(error.message);
      return 0;
    }
  },
  release(place) {
    core.exports.__indirect_function_table.set(place, null);
    free.push(place);
  },
};
for (const { module: from, name } of WebAssembly.Module.imports(module))
  if (from === "lockstep") lockstep[name] ??= () => 0; // no WebGPU here
if (fuses()) console.log("fma is the engine's");
core = await WebAssembly.instantiate(module, { ...wasi.getImportObject(), lockstep });
process.exitCode = wasi.start(core);
