// Commands of the program as functions: options with the contents of files in, the document and the written files out.
import { bytesOf, readArrays, withArrays } from "./arrays.js";
import { InputError } from "./errors.js";

/** A value of an option for the core: the name of a file { name, bytes }, whose content is stored in `files`. */
function withoutFiles(value, files, where) {
  if (Array.isArray(value)) return value.map((item) => withoutFiles(item, files, where));
  if (value?.bytes === undefined) return value;
  const { name, bytes } = value;
  const values = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytesOf(bytes, where);
  if (typeof name !== "string" || !name || files[name])
    throw new InputError(`a file named ${String(name)}`, where, "{ name, bytes } with a name that no other file of the call has");
  files[name] = { values, shape: [values.length] };
  return name;
}

async function run(core, command, { device = "auto", ...given } = {}) {
  const where = `lockstep.${command}`, files = {}, options = {};
  for (const [name, value] of Object.entries(given)) options[name] = withoutFiles(value, files, where);
  return withArrays(core, files, where, async (taken) => {
    const answer = await core.callWaiting(command, { device, options, files: taken });
    const written = Object.entries(await readArrays(core, answer.files));
    return { ...answer, files: Object.fromEntries(written.map(([name, { values }]) => [name, values])) };
  });
}

/** Functions of an application: those of the core's commands that begin with its name. */
export const commandFunctions = (core, application) =>
  Object.fromEntries(core.call("commands").map((command) => command.split(".")).filter(([first]) => first === application)
    .map(([, name]) => [name, (options) => run(core, `${application}.${name}`, options)]));
