// Expressions: what is read, and that values and derivatives are right.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { InputError, load, site } from "./site.mjs";

const { parse } = await import(new URL("lockstep/residual.js", site));
const { minimise } = await import(new URL("minimise.js", site));
let ls, device;
before(async () => {
  ls = await load({ print: () => {} });
  device = await ls.open("cpu");
});

test("precedence", () => {
  assert.deepEqual(parse("1 - 2 - x*3^2^y"), ["sub", ["sub", 1, 2], ["mul", "x", ["pow", 3, ["pow", 2, "y"]]]]);
  assert.deepEqual(parse("-x^2"), ["neg", ["pow", "x", 2]]);
  assert.deepEqual(parse("2*-x/y"), ["div", ["mul", 2, ["neg", "x"]], "y"]);
  assert.deepEqual(parse(" hypot( x , 1.5e-3 ) "), ["hypot", "x", 0.0015]);
  assert.deepEqual(parse("(x + 1)*(x - 1)"), ["mul", ["add", "x", 1], ["sub", "x", 1]]);
});

test("what is no expression is refused by its place", () => {
  for (const [text, pattern] of [["", /the end/], ["x +", /the end/], ["x y", /"y" at character 3/], ["(x", /the end.*"\)"/], ["x $ 2", /"\$" at character 2/],
    ["sin()", /"\)" at character 5/], ["1..2", /character/], ["(".repeat(5000), /nested too deeply/]])
    assert.throws(() => parse(text), (error) => error instanceof InputError && (assert.match(error.message, pattern), true), text);
  const wrong = (expressions, pattern, variables = ["x"]) =>
    assert.throws(() => ls.residual(device, variables, expressions), (error) => error instanceof InputError && (assert.match(error.message, pattern), true));
  wrong(["y"], /name y.*one of x/);
  wrong(["foo(x)"], /function foo/);
  wrong(["sin(x, x)"], /sin of 2.*1 operands/);
  wrong(["x"], /different names/, ["x", "x"]);
  wrong([], /1 to 64/);
  wrong([Array(600).fill("x").join("+")], /too long/);
});

test("derivatives are those of differences", async () => {
  const texts = ["sin(x*y) + exp(x/3)", "hypot(x, y)*atan2(y, x)", "x^3 - 2/y + sqrt(x^2 + 1)", "min(x, y)*tanh(y) - abs(x)^1.5"];
  const residual = ls.residual(device, ["x", "y"], texts);
  const at = [0.7, -1.3], step = 1e-6;
  const shifted = [at, [at[0] + step, at[1]], [at[0] - step, at[1]], [at[0], at[1] + step], [at[0], at[1] - step]];
  const rows = await residual.at([shifted.map((p) => p[0]), shifted.map((p) => p[1])]);
  texts.forEach((text, r) => {
    const [, xp, xm, yp, ym] = rows[r];
    const [dx, dy] = [rows[4 + 2 * r][0], rows[5 + 2 * r][0]];
    assert.ok(Math.abs((xp - xm) / (2 * step) - dx) < 1e-8 * (1 + Math.abs(dx)), `${text} by x`);
    assert.ok(Math.abs((yp - ym) / (2 * step) - dy) < 1e-8 * (1 + Math.abs(dy)), `${text} by y`);
  });
  assert.ok(Math.abs(rows[0][0] - (Math.sin(at[0] * at[1]) + Math.exp(at[0] / 3))) < 1e-14);
  assert.match(residual.derivatives[2][0], /x/);
  residual.dispose();
});

test("minimising finds the minimum", async () => {
  const path = await minimise(ls.residual(device, ["x", "y"], ["10*(y - x^2)", "1 - x"]), [-1.5, 2]);
  assert.ok(path.at(-1).cost < 1e-20 && Math.hypot(path.at(-1).point[0] - 1, path.at(-1).point[1] - 1) < 1e-9);
  for (let k = 1; k < path.length; ++k) assert.ok(path[k].cost < path[k - 1].cost);
});

test("points that do not fit, and a variable pi, are refused", async () => {
  assert.throws(() => ls.residual(device, ["pi"], ["pi*2"]), (error) => error instanceof InputError && /pi is the constant/.test(error.message));
  const residual = ls.residual(device, ["x", "y"], ["x*y"]);
  for (const points of [[[1, 2], [3]], [[1, 2]], [[1], [null]], []])
    await assert.rejects(residual.at(points), (error) => error instanceof InputError && /as many of each of 2 variables/.test(error.message));
  residual.dispose();
});
