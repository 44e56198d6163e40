// Errors of the core: each says what, where and what was expected.

/** Base of all errors. `message` holds all parts on one line. */
export class LockstepError extends Error {
  constructor(what, where = "", expected = "", hint = "", message = undefined) {
    super(message ?? `${what} [${where}]` + (expected ? `: expected ${expected}` : ""));
    this.name = new.target.name;
    this.what = what;
    this.where = where;
    this.expected = expected;
    this.hint = hint;
  }
}
/** Bad usage or bad input. */
export class InputError extends LockstepError {}
/** The device cannot do what was asked. */
export class UnsupportedError extends LockstepError {}
/** A device failed while it worked. */
export class DeviceError extends LockstepError {}
/** A broken invariant of Lockstep itself. */
export class InternalError extends LockstepError {}

const kinds = { input: InputError, unsupported: UnsupportedError, device: DeviceError, internal: InternalError };

/** The error that the core's answer describes. */
export function errorOf({ kind, what, where, expected, hint, message }) {
  return new (kinds[kind] ?? InternalError)(what, where, expected, hint, message);
}
