// The package as web/build made it, in the folder that WEB_SITE names.
import { pathToFileURL } from "node:url";

export const site = pathToFileURL(process.env.WEB_SITE + "/");
const lockstep = await import(new URL("lockstep/lockstep.js", site));
export const { load, Grid, Out, InOut, InputError, DeviceError, UnsupportedError, LockstepError } = lockstep;
