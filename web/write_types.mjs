// node write_types.mjs TEMPLATE FOLDER: writes FOLDER/lockstep.d.ts, with the words of the kernel language as the core of that
// folder lists them.
import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [template, folder] = process.argv.slice(2);
const at = (name) => new URL(name, pathToFileURL(resolve(folder) + "/"));
const { load } = await import(at("lockstep.js"));
const { operators } = await import(at("values.js"));
const lockstep = await load();

const symbols = new Map(Object.entries(operators).map(([name, symbol]) => [symbol, name]));
const letters = ["a", "b", "c"];
const words = Object.entries(lockstep.request("words")).map(([text, arity]) => [symbols.get(text) ?? text, arity]);
words.push(["round", 1], ["rounded", 1], ["uniform", 1], ["group_sum", 1], ["group_min", 1], ["group_max", 1]);
const operandsOf = (arity, from) => letters.slice(from, arity).map((letter) => `${letter}: Operand`).join(", ");
const lines = (from) => words.map(([name, arity]) => `  ${name}(${operandsOf(arity, from)}): Val;`).join("\n");

const text = (await readFile(template, "utf8")).replace("  // METHODS", lines(1)).replace("  // FUNCTIONS", lines(0));
await writeFile(at("lockstep.d.ts"), text);
