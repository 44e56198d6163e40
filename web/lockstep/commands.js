// Commands of the program as functions: options in, the document and the written files out.
import { readArrays } from "./arrays.js";

async function run(core, command, { device = "auto", ...options } = {}) {
  const { files, ...answer } = await core.callWaiting(command, { device, options, files: {} });
  const written = Object.entries(await readArrays(core, files));
  return { ...answer, files: Object.fromEntries(written.map(([name, { values }]) => [name, values])) };
}

/** Functions of an application: those of the core's commands that begin with its name. */
export const commandFunctions = (core, application) =>
  Object.fromEntries(core.call("commands").map((command) => command.split(".")).filter(([first]) => first === application)
    .map(([, name]) => [name, (options) => run(core, `${application}.${name}`, options)]));
