// Commands of the program as functions: options with the contents of files in, the document and the written files out.
import { bytesOf, npyOf, readArrays, withArrays } from "./arrays.js";
import { InputError } from "./errors.js";

/** A value of an option for the core: the name of a file { name, bytes }, whose content is stored in `files`. An array
 * { values, shape } is the .npy file with the option's name. */
function withoutFiles(option, value, files, where) {
  if (Array.isArray(value)) return value.map((item) => withoutFiles(option, item, files, where));
  if (value?.values && value.shape) return withoutFiles(option, { name: `${option}.npy`, bytes: npyOf(value, `${where}, ${option}`) }, files, where);
  if (value?.bytes === undefined) return value;
  const { name, bytes } = value;
  const values = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytesOf(bytes, where);
  if (typeof name !== "string" || !name || files[name])
    throw new InputError(`a file named ${String(name)}`, where, "{ name, bytes } with a name that no other file of the call has");
  files[name] = { values, shape: [values.length] };
  return name;
}

async function run(core, { name: command, reports }, { device = "auto", onProgress, ...given } = {}) {
  const where = `lockstep.${command}`, files = {}, options = {};
  if (onProgress && !reports) throw new InputError("option onProgress", where, "a call that reports progress");
  const onFrame = onProgress && (({ iterations, cost }) => onProgress(iterations, cost));
  for (const [name, value] of Object.entries(given)) options[name] = withoutFiles(name, value, files, where);
  return withArrays(core, files, where, async (taken) => {
    const answer = await core.callWaiting(command, { device, options, files: taken }, 0, onFrame);
    const written = Object.entries(await readArrays(core, answer.files));
    return { ...answer, files: Object.fromEntries(written.map(([name, { values }]) => [name, values])) };
  });
}

/** Functions of an application: those of the core's commands that begin with its name. */
export const commandFunctions = (core, application) =>
  Object.fromEntries(core.call("commands").filter(({ name }) => name.startsWith(`${application}.`))
    .map((command) => [command.name.slice(application.length + 1), (options) => run(core, command, options)]));
