// Residuals written as text: read here, differentiated and lowered to one kernel by the core.
import { InputError } from "./errors.js";
import { Kernel } from "./kernel.js";

const binary = { "+": ["add", 1], "-": ["sub", 1], "*": ["mul", 2], "/": ["div", 2], "^": ["pow", 4] };

/** Splits text into numbers, names and symbols, each with its position. */
function tokens(text) {
  const found = [];
  const pattern = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|([-+*/^(),]))/y;
  while (pattern.lastIndex < text.trimEnd().length) {
    const start = pattern.lastIndex, match = pattern.exec(text);
    if (!match) throw new InputError(`"${text.slice(start).trim()[0]}" at character ${start + 1}`, "residual", "numbers, names, + - * / ^ and parentheses");
    found.push({ number: match[1], name: match[2], symbol: match[3], at: pattern.lastIndex - (match[1] ?? match[2] ?? match[3]).length });
  }
  return found;
}

/** The tree of an expression: a number, a name or [operation, operands…]. */
export function parse(text) {
  const all = tokens(String(text));
  let next = 0, depth = 0;
  const wrong = (expected) => {
    const token = all[next];
    const what = token ? `"${token.number ?? token.name ?? token.symbol}" at character ${token.at + 1}` : "the end of the expression";
    return new InputError(what, "residual", expected);
  };
  const take = (symbol) => {
    if (all[next]?.symbol !== symbol) throw wrong(`"${symbol}"`);
    ++next;
  };
  function operand() {
    if (++depth > 200) throw new InputError("an expression that is nested too deeply", "residual", "less than 200 levels");
    const token = all[next];
    if (!token) throw wrong("a number, a name or a parenthesis");
    let tree;
    if (token.number !== undefined) {
      ++next;
      tree = Number(token.number);
    } else if (token.name !== undefined) {
      ++next;
      tree = all[next]?.symbol === "(" ? call(token.name) : token.name === "pi" ? Math.PI : token.name;
    } else if (token.symbol === "-") {
      ++next;
      tree = ["neg", expression(3)];
    } else {
      take("(");
      tree = expression(0);
      take(")");
    }
    --depth;
    return tree;
  }
  function call(name) {
    take("(");
    const operands = [expression(0)];
    while (all[next]?.symbol === ",") {
      ++next;
      operands.push(expression(0));
    }
    take(")");
    return [name, ...operands];
  }
  function expression(least) {
    let left = operand();
    for (;;) {
      const [name, strength] = binary[all[next]?.symbol] ?? [];
      if (name === undefined || strength < least) return left;
      ++next;
      left = [name, left, expression(name === "pow" ? strength : strength + 1)];
    }
  }
  const tree = expression(0);
  if (next < all.length) throw wrong("an operator, or the end");
  return tree;
}

/** Expressions with their derivatives, as one kernel. */
export class Residual {
  #device;
  /** `expressions` are texts in the names of `variables`. */
  constructor(core, device, variables, expressions) {
    /** The expressions as they were read: a number, a name or [operation, operands…]. */
    this.trees = expressions.map(parse);
    if (variables.includes("pi")) throw new InputError('a variable "pi"', "residual", "another name: pi is the constant");
    const answer = core.call("residual", { variables, expressions: this.trees });
    this.#device = device;
    this.variables = [...variables];
    /** Texts of the values and of their derivatives by each variable, as the core simplifies them. */
    this.values = answer.values;
    this.derivatives = answer.derivatives;
    this.kernel = Kernel.traced(core, "residual", [
      { name: "x", kind: "read", type: "f64", rank: 2 }, { name: "out", kind: "write", type: "f64", rank: 2 },
    ], answer);
  }
  /** Values and derivatives at points: `points[v]` holds variable v of each; the rows of the result are the values, then each
   * value's derivatives. */
  async at(points) {
    const count = points[0]?.length;
    if (points.length !== this.variables.length || points.some((row) => row.length !== count || Array.from(row).some((x) => typeof x !== "number")))
      throw new InputError("points", "residual", `numbers: as many of each of ${this.variables.length} variables`);
    const rows = this.values.length * (1 + this.variables.length);
    const x = this.#device.array("f64", [this.variables.length, count], Float64Array.from(points.flatMap((row) => Array.from(row))));
    const out = this.#device.array("f64", [rows, count]);
    try {
      this.#device.launch(this.kernel, count, x, out);
      const all = await out.download();
      return Array.from({ length: rows }, (_, k) => all.subarray(k * count, (k + 1) * count));
    } finally {
      x.dispose();
      out.dispose();
    }
  }
  dispose() {
    this.kernel.dispose();
  }
}
