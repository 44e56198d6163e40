// The cases of `lockstep verify` in this page.
import { InputError } from "./errors.js";

/** Lets the page draw. */
const pause = () => new Promise((resume) => setTimeout(resume, 0));

function chosen(core, prefix, sizes) {
  const found = core.call("cases").filter(({ name }) => name.startsWith(prefix));
  if (found.length === 0) throw new InputError(`case ${prefix}`, "lockstep.verify", "a name, or its beginning, that lockstep.cases() lists");
  return found.flatMap((c) => (sizes ?? c.sizes).map((size) => ({ case: c.name, size })));
}

/** One row for each problem, as `lockstep verify` prints them; `onRow` gets each as it comes. */
export async function verify(core, device, { cases = "", sizes, against = "interp", onRow } = {}) {
  const rows = [];
  for (const problem of chosen(core, cases, sizes)) {
    const row = core.call("verify", { ...problem, device: device.handle, against });
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
    const row = { ...problem, digest: core.call("digest", { ...problem, device: device.handle }) };
    rows.push(row);
    onRow?.(row);
    await pause();
  }
  return rows;
}
