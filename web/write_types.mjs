// node write_types.mjs TEMPLATE FOLDER: writes FOLDER/lockstep.d.ts, with the functions of the kernel language, and the commands
// with their options, as the core of that folder lists them.
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

/** A command's options as an interface: solve.fit has SolveFitOptions. */
const optionsOf = (command) => command.split(".").map((part) => part[0].toUpperCase() + part.slice(1)).join("") + "Options";
function typeOf({ kind, input, folder, list, parts, choices }) {
  if (folder) return "GivenFile[]";
  const one = input ? "GivenFile | HostArray | string" : choices.length ? choices.map((choice) => (/^\d+$/.test(choice) ? choice : JSON.stringify(choice))).join(" | ") : kind;
  if (parts) return `${kind} | unknown[] | Record<string, unknown>`;
  return list ? `${input ? "" : "string | "}(${one})[]` : one;
}
const commands = lockstep.request("commands"), document = (text) => text.replaceAll("*/", "* /");
const interfaces = commands.map(({ name: command, reports }) => {
  const members = lockstep.request("options", { command }).map((option) =>
    `  /** ${document(option.help)}${option.default ? ` (${document(option.default)})` : ""} */\n  ${option.name}${option.required ? "" : "?"}: ${typeOf(option)}${option.required ? "" : " | null"};\n`);
  if (reports) members.push("  /** Of a long call: false ends it. */\n  onProgress?: (done: number, total: number) => boolean | void;\n");
  return `export interface ${optionsOf(command)} {\n  device?: string;\n${members.join("")}}`;
});
const functions = (_, application) => commands.filter(({ name }) => name.startsWith(`${application}.`))
  .map(({ name: command }) => `  ${command.slice(application.length + 1)}(options?: ${optionsOf(command)}): Promise<CommandResult>;`).join("\n");

const text = (await readFile(template, "utf8")).replace("  // METHODS", lines(1)).replace("  // FUNCTIONS", lines(0))
  .replace("// OPTIONS", interfaces.join("\n")).replace(/  \/\/ COMMANDS (\w+)/g, functions);
await writeFile(at("lockstep.d.ts"), text);
