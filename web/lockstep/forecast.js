// Forecasts of trainings: rollouts of recurrent ensembles, learning curves, ensembles that observe a log.
import { InputError } from "./errors.js";
import { bytesOf, readArrays, withArrays } from "./arrays.js";
import { commandFunctions } from "./commands.js";

/** Columns of numbers by name as the text of a CSV file. */
function csvOf(columns) {
  const names = Object.keys(columns), [first = []] = Object.values(columns);
  for (const name of names)
    if (columns[name]?.length !== first.length)
      throw new InputError(`${columns[name]?.length} numbers of ${name}`, "lockstep.forecast", `${first.length}, as of ${names[0]}`);
  return [names.join(), ...Array.from(first, (_, row) => names.map((name) => columns[name][row] ?? "").join())].join("\n");
}
/** `use` of a log in the core: { name, bytes } of a file, or columns by name, `step` among them. */
async function withLog(core, log, where, use) {
  const [name, values] = log.bytes ? [String(log.name), bytesOf(log.bytes, where)] : ["columns.csv", new TextEncoder().encode(csvOf(log))];
  return withArrays(core, { log: { values, shape: [values.length] } }, where, (taken) => use({ name, ...taken }));
}

export const forecastFunctions = (core) => {
  const where = "lockstep.forecast", withModel = (model, use) => withArrays(core, model ?? {}, where, use);
  return {
    ...commandFunctions(core, "forecast"),
    /** Forecasts a loss by an ensemble of recurrent networks. model: the arrays of MODEL.npz by name (W_z W_r W_h U_… b_… w
     * features …), or null for random weights. Options are those of `lockstep forecast rollout`. */
    rollout: (model, { device = "auto", ...options } = {}) =>
      withModel(model, (taken) => core.callWaiting("forecast_rollout", { device, model: taken, options })),
    /** Forecasts the loss of a running training, with bands and advice. Options are those of `lockstep forecast curve`. */
    curve: (log, options = {}) => withLog(core, log, where, (given) => core.callWaiting("forecast_curve", { ...given, options })),
    /** An ensemble learns the losses of a log one by one: its predictions, and `model` for rollout(). options.model: weights to
     * begin with; the others are those of `lockstep forecast observe`. */
    observe: (log, { device = "auto", model: start, ...options } = {}) => withLog(core, log, where, (given) => withModel(start, async (taken) => {
      const { model, ...answer } = await core.callWaiting("forecast_observe", { device, ...given, model: taken, options });
      return { ...answer, model: await readArrays(core, model) };
    })),
  };
};
