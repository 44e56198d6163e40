// Losses of partial differential equations with their gradients, and shipped equations that they solve.
import { readArrays, withArrays } from "./arrays.js";

async function lossOf(core, call, arrays, { device = "auto", ...options }) {
  return withArrays(core, arrays, `lockstep.pde.${call}`, async (taken) => {
    const { gradients, residuals, ...answer } = await core.callWaiting(`pde_${call}`, { device, arrays: taken, options });
    return { ...answer, gradients: await readArrays(core, gradients), residuals: await readArrays(core, residuals) };
  });
}

export const pdeFunctions = (core) => ({
  /** The loss of three time levels of `lockstep pde loss`: sigma0 … sigma2 (nz, ny, nx), u0 … u2 (3, nz, ny, nx), and p, force,
   * mask and values of boundaries by name. Options are those of the command: spacing, dt, boundary, terms, order …; residuals:
   * true gives the residual fields too. */
  loss: (arrays, options) => lossOf(core, "loss", arrays, options),
  /** That of `lockstep pde trajectory`: sigma (T, nz, ny, nx), u (T, 3, nz, ny, nx). */
  trajectory: (arrays, options) => lossOf(core, "trajectory", arrays, options),
  /** Compares residuals, gradients and Jacobian products of `loss` with complex steps: rows of what, error, bound, passed. */
  check: (arrays, { device = "auto", ...options }) =>
    withArrays(core, arrays, "lockstep.pde.check", (taken) => core.callWaiting("pde_check", { device, arrays: taken, options })),
  /** Names of the shipped equations. */
  examples: () => core.call("pde_examples"),
  /** Solves a shipped equation by minimising its loss in f64. Options are those of `lockstep pde example`: cells, parameters,
   * levels, windows, iterations, tolerance. */
  async example(name, { device = "auto", ...options } = {}) {
    const { fields, ...answer } = await core.callWaiting("pde_example", { device, options: { name, ...options } });
    return { ...answer, fields: await readArrays(core, fields) };
  },
});
