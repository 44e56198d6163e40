// Control flow of kernels. A body runs once, while tracing.
import { authorsPlace } from "./core.js";
import { InputError } from "./errors.js";
import { wholeNumber } from "./numbers.js";
import { isTraced, operand, Trace, traced, Val } from "./values.js";

/** Runs the function of a block. What it throws ends the trace, also where the author catches it. */
function run(body, ...values) {
  const trace = Trace.current;
  if (typeof body !== "function") throw new InputError("a block that is no function", authorsPlace(), "() => { … }");
  let result;
  try {
    result = body(...values);
  } catch (error) {
    trace.failed ??= { error };
    throw error;
  }
  if (result !== undefined)
    throw new InputError("a block that returns a value", authorsPlace(), "a variable (lockstep.var) that the block sets, or braces around a lone statement");
}

function ifStatement(core, condition, then, otherwise) {
  if (!isTraced(condition)) throw new InputError(`if on ${String(condition)}`, authorsPlace(), "a traced condition; JavaScript's own if serves the rest");
  const block = traced(core, "open_block", {});
  run(then);
  const closed = traced(core, "close_if", { block, condition: operand(condition) });
  if (otherwise === undefined) return;
  const other = traced(core, "open_else", { closed });
  run(otherwise);
  traced(core, "close_block", { block: other });
}

function forStatement(core, ...given) {
  const body = given.find((value) => typeof value === "function");
  const numbers = given.filter((value) => value !== body);
  const [begin, end, step = 1] = numbers.length === 1 ? [0, numbers[0]] : numbers;
  if (!body || numbers.length < 1 || numbers.length > 3 || given.at(-1) !== body)
    throw new InputError("for", authorsPlace(), "for(n, body), for(begin, end, body) or for(begin, end, step, body)");
  const type = [begin, end].find((bound) => isTraced(bound))?.type ?? "i32";
  const opened = traced(core, "open_for", { bounds: [operand(begin, type), operand(end, type)], step: wholeNumber(step, "a step of") });
  run(body, new Val(core, opened.index));
  traced(core, "close_for", { block: opened.block, begin: opened.begin, end: opened.end, step });
}

function whileStatement(core, condition, body) {
  if (typeof condition !== "function") throw new InputError("while on a value", authorsPlace(), "a function that is asked before every pass: () => x.get().lt(3)");
  const block = traced(core, "open_block", {});
  const asked = condition();
  if (!isTraced(asked)) throw new InputError(`while on ${String(asked)}`, authorsPlace(), "a traced condition, or a bound of for");
  const stop = core.functions.not(asked)._operand(), inner = traced(core, "open_block", {});
  traced(core, "effect", { name: "break" });
  traced(core, "close_if", { block: inner, condition: stop });
  run(body);
  traced(core, "close_loop", { block });
}

/** The statements of the kernel language. */
export function flowFunctions(core) {
  const statements = {
    if: (condition, then, otherwise) => ifStatement(core, condition, then, otherwise),
    for: (...given) => forStatement(core, ...given),
    while: (condition, body) => whileStatement(core, condition, body),
  };
  for (const name of ["break", "continue", "return", "barrier"]) statements[name] = () => void traced(core, "effect", { name });
  return statements;
}
