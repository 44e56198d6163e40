// The cases of `lockstep verify` in this page.
import { pause } from "./core.js";
import { InputError } from "./errors.js";

function chosen(core, prefix, sizes, usual = "sizes") {
  const found = core.call("cases").filter(({ name }) => name.startsWith(prefix));
  if (found.length === 0) throw new InputError(`case ${prefix}`, "lockstep.verify", "a name, or its beginning, that lockstep.cases() lists");
  return found.flatMap((c) => (sizes ?? c[usual]).map((size) => ({ case: c.name, size })));
}

/** One row for each problem, as `lockstep verify` prints them; `onRow` gets each as it comes. */
export async function verify(core, device, { cases = "", sizes, against = "interp", onRow } = {}) {
  const rows = [];
  for (const problem of chosen(core, cases, sizes)) {
    const row = await device._ask("verify", { ...problem, against });
    rows.push(row);
    onRow?.(row);
    await pause();
  }
  return rows;
}

/** A digest of the results of each problem; "" where the device does not run the case. */
export async function digests(core, device, { cases = "", sizes, onRow } = {}) {
  const rows = [];
  for (const problem of chosen(core, cases, sizes)) {
    const row = { ...problem, digest: await device._ask("digest", problem) };
    rows.push(row);
    onRow?.(row);
    await pause();
  }
  return rows;
}

/** Times of each problem, as `lockstep bench` prints them. */
export async function bench(core, device, { cases = "", sizes, onRow } = {}) {
  const rows = [];
  for (const problem of chosen(core, cases, sizes, "benchSizes")) {
    const row = await device._ask("bench", problem);
    rows.push(row);
    onRow?.(row);
    await pause();
  }
  return rows;
}
