// lockstep.d.ts names what the module has, and nothing else.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { Grid, load, Out, site } from "./site.mjs";

const module = await import(new URL("lockstep/lockstep.js", site));
const text = await readFile(new URL("lockstep/lockstep.d.ts", site), "utf8");

/** Names of the members of a declaration. */
function declared(kind, name) {
  const body = new RegExp(`^export ${kind} ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, "m").exec(text)[1];
  return new Set([...body.matchAll(/^ {2}(?:readonly )?(\w+)[(?:]/gm)].map(([, member]) => member));
}
/** Names of what an object has, without those that begin with an underscore. */
function present(object) {
  const names = new Set(Object.keys(object));
  for (let of = Object.getPrototypeOf(object); of && of !== Object.prototype; of = Object.getPrototypeOf(of))
    for (const name of Object.getOwnPropertyNames(of)) names.add(name);
  return new Set([...names].filter((name) => !name.startsWith("_") && name !== "constructor"));
}
const only = (a, b) => [...a].filter((name) => !b.has(name)).sort();

test("the package has the layout that npm packs: what it exports, imports and declares is in it", async () => {
  const folder = new URL("lockstep/", site), names = await readdir(folder);
  const described = JSON.parse(await readFile(new URL("package.json", folder), "utf8"));
  assert.match(described.version, /^\d+\.\d+\.\d+$/);
  assert.notEqual(described.version, "0.0.0");
  const packed = names.filter((name) => name === "package.json" || described.files.some((pattern) => pattern === name || (pattern === "*.js" && name.endsWith(".js"))));
  assert.deepEqual(only(new Set(names), new Set(packed)), [], "files that npm leaves out");
  const exported = Object.values(described.exports).flatMap((target) => (typeof target === "string" ? target : Object.values(target)));
  for (const path of [described.main, described.types, ...exported, ...described.files.filter((name) => !name.includes("*"))])
    assert.ok(packed.includes(path.replace(/^\.\//, "")), path);
  for (const name of packed.filter((file) => file.endsWith(".js")))
    for (const [, quoted] of (await readFile(new URL(name, folder), "utf8")).replace(/^ *\/\/.*$/gm, "").matchAll(/(?:from |import\(|new URL\()"([^"]+)"/g))
      assert.ok(quoted.startsWith("node:") || quoted === "." || packed.includes(quoted.replace(/^\.\//, "")), `${name} imports ${quoted}`);
});

test("every name is declared, and every declared name is there", async () => {
  const ls = await load(), device = await ls.open("cpu"), buffer = device.array("f32", 2);
  const seen = {};
  const kernel = ls.kernel({ x: Grid("f32"), out: Out("f32") }, (at, x, out) => {
    Object.assign(seen, { At: present(at), Val: present(x.load(at)), Var: present(ls.var(0)), TracedBuffer: present(x), TracedArray: present(ls.local("f32", 2)) });
    out.store(at, 0);
  });
  ls.kernel({ out: Out("f32") }, (group) => { seen.Group = present(group); }, { group: [32] });
  Object.assign(seen, { Lockstep: present(ls), Device: present(device), Buffer: present(buffer), Kernel: present(kernel),
    Residual: present(ls.residual(device, ["x"], ["x"])), Solve: present(ls.solve), Pde: present(ls.pde), Forecast: present(ls.forecast), FlowFunctions: present({ ...ls.flow }) });
  const mesh = ls.mesh(new TextEncoder().encode("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"), "a.obj");
  Object.assign(seen, { Mesh: present(mesh), MeshProblem: present(await ls.meshProblem(mesh, { energy: "springs", device: "cpu" })),
    Flow: present(await ls.flow({ device: "cpu", nx: 8, ny: 8, dt: 0.01 })), City: present(await ls.sampleCity({ device: "cpu", rows: 16, cols: 16 })) });
  const internal = { Lockstep: ["request"], Device: ["handle"], Buffer: ["handle"], Kernel: ["handle", "parameters"], Val: ["toJSON"], At: ["x", "y", "z"],
    Group: [], Var: [], TracedBuffer: [], TracedArray: [], Residual: [], Solve: [], Pde: [], Forecast: [], FlowFunctions: [], Mesh: ["handle"], MeshProblem: ["handle"], Flow: ["handle"], City: ["handle"] };
  for (const [name, names] of Object.entries(seen)) {
    const types = declared(["Device", "Buffer", "Kernel", "Mesh", "MeshProblem", "Flow", "City"].includes(name) ? "class" : "interface", name);
    types.delete("private");
    assert.deepEqual(only(types, names), [], `${name}: declared, but not there`);
    assert.deepEqual(only(names, types), internal[name], `${name}: there, but not declared`);
  }
  assert.deepEqual(Object.keys(module).filter((name) => !new RegExp(`^export (class|function) ${name}\\b`, "m").test(text)), []);
});
