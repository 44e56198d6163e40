// Kernels that do not trace and calls that do not fit: each is an error of its class that says what, where and what was expected.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { DeviceError, Grid, InputError, load, LockstepError, Out, UnsupportedError } from "./site.mjs";

let ls, device;
before(async () => {
  ls = await load({ print: () => {} });
  device = await ls.open("cpu");
});

/** Traces a kernel that must fail; its error. */
function failing(body, parameters = { x: Grid("f32"), n: "i32", out: Out("f32") }, options = {}) {
  try {
    ls.kernel(parameters, body, { name: "wrong", ...options });
  } catch (error) {
    return error;
  }
  return assert.fail("the kernel traced");
}
function check(error, what, expected, where = /errors\.test\.mjs:\d+/) {
  assert.ok(error instanceof InputError, String(error?.stack ?? error));
  assert.match(error.what, what);
  assert.match(error.where, where);
  assert.match(error.expected, expected);
  assert.ok(error.message.includes(error.what) && error.message.includes(error.where));
}

test("JavaScript's own operators and conditions on traced values", () => {
  check(failing((at, x, n, out) => out.store(at, x.load(at) + 1)), /an operator of JavaScript/, /a\.add\(b\)/);
  check(failing((at, x, n, out) => { if (x.load(at) > 0) out.store(at, 1); }), /an operator of JavaScript/, /a\.lt\(b\)/);
  check(failing((at, x, n, out) => { if (x.load(at).gt(0)) out.store(at, 1); }), /a condition that nothing uses/, /lockstep\.if/);
  check(failing((at, x, n, out) => out.store(at, x.load(at).gt(0) ? 1 : 2)), /a condition that nothing uses/, /select/);
  check(failing((at, x, n, out) => { for (const v of x.load(at)) out.store(at, v); }), /a JavaScript loop/, /lockstep\.for/);
  check(failing((at, x, n, out) => { for (const v of x) out.store(at, v); }), /a JavaScript loop over traced memory/, /lockstep\.for/);
  check(failing((at, x, n, out) => out.store(at, Math.sqrt(x.load(at)))), /an operator of JavaScript/, /methods/);
  check(failing((at, x, n, out) => out.store(at, `${x.load(at)}`)), /an operator of JavaScript/, /methods/);
  check(failing((at, x, n, out) => out.store(at, ls.var(0) * 2)), /a variable of a kernel/, /v\.get\(\)/);
});

test("what a kernel's function is and gives", async () => {
  check(failing((at, x) => x.load(at)), /returns a value/, /Out or InOut/, /kernel wrong/);
  check(failing(async () => {}), /async/, /at once/, /kernel wrong/);
  check(failing(7), /without a function/, /kernel\(parameters/);
  check(failing(() => {}, { x: Grid("f32") }), /buffer that it writes/, /Out or InOut/);
  check(failing(() => {}, { x: "f33", out: Out("f32") }), /parameter x: f33/, /Grid, Out, InOut/);
  check(failing(() => {}, { out: Out("f32") }, { group: [2000] }), /a group of 2000/, /1 to 1024/);
  check(failing(() => {}, { out: Out("f32") }, { group: [512, 4] }), /512 x 4/, /1024 lanes/, /kernel wrong/);
  assert.throws(() => Grid("f128"), InputError);
  assert.throws(() => Out("f32", 5), InputError);
  const thrown = new TypeError("the author's own");
  assert.equal(failing(() => { throw thrown; }), thrown);
});

test("numbers and types", () => {
  check(failing((at, x, n, out) => out.store(at, NaN)), /NaN with a traced f32/, /bitcast/);
  check(failing((at, x, n, out) => out.store(at, x.load(at).add(undefined))), /undefined for a value of f32/, /a number/);
  check(failing((at, x, n, out) => out.store(at, "1")), /1 for a value of f32/, /a number/);
  check(failing((at, x, n, out) => out.store(at, n.add(0.5).cast("f32"))), /0\.5/, /exactly/);
  check(failing((at, x, n, out) => out.store(at, n.add(2 ** 31).cast("f32"))), /2147483648/, /exactly/);
  check(failing((at, x, n, out) => out.store(at, x.load(at).add(1e39))), /1e\+39/, /exactly|range|holds/);
  check(failing((at, x, n, out) => out.store(at, n.add(2n ** 70n).cast("f32"))), /of|with/, /64 bits/);
  check(failing((at, x, n, out) => out.store(at, x.load(at).add(n))), /\+ of f32 and i32/, /cast/);
  check(failing((at, x, n, out) => out.store(at, n)), /i32 stored in f32/, /f32/);
  check(failing((at, x, n, out) => out.store(at, x.load(at).and(1))), /f32/, /./);
  check(failing((at, x, n, out) => out.store(at, ls.fma(x.load(at), 1))), /fma of 2 operands/, /3/);
  check(failing((at, x, n, out) => out.store(at, ls.sqrt(2))), /without a traced value/, /traced operand/);
  check(failing((at, x, n, out) => ls.if(x.load(at), () => out.store(at, 1))), /a condition that is a traced f32/, /a comparison/);
});

test("memory", () => {
  check(failing((at, x, n, out) => x.store(at, 1)), /store into x, which is Grid/, /InOut/);
  check(failing((at, x, n, out) => out.store(at, out.load(at))), /read of out, which is Out/, /InOut/);
  check(failing((at, x, n, out) => out.store(at, x.load(-1))), /a coordinate -1/, /0 to/);
  check(failing((at, x, n, out) => out.store(at, x.load(1, 2))), /2 coordinates/, /1/);
  check(failing((at, x, n, out) => out.store(at, x.load(at, at))), /traced|object|coordinate/, /./);
  check(failing((at, x, n, out) => out.store(at, x.load(at.x(0.5)))), /a shift of a point by 0\.5/, /a whole number/);
  check(failing((at, x, n, out) => out.store(at, x.load(at.y(1)))), /axis y of a 1-D point/, /x, y, z/);
  check(failing((at, x, n, out) => out.store(at, x.size(1).cast("f32"))), /axis 1/, /0 to 0/);
  check(failing((at, x, n, out) => ls.local("f32", 4).store(4, 1)), /a coordinate 4/, /0 to 3/);
  check(failing((at, x, n, out) => ls.local("f32", 0)), /an array of 0/, /1 to/);
  check(failing((at, x, n, out) => out.atomic("add", 0, 1)), /atomic add on f32/, /i32 or u32/);
  check(failing((at, x, n, out) => out.store(at, x.load(x.load(at)))), /f32/, /i32/);
});

test("control flow", () => {
  check(failing((at, x, n, out) => ls.break()), /break/, /./, /./);
  check(failing((at, x, n, out) => ls.for(3)), /^for$/, /for\(n, body\)/);
  check(failing((at, x, n, out) => ls.for(0, n, 0, () => {})), /for_? from/, /other than 0/, /./);
  check(failing((at, x, n, out) => ls.for(x.load(at), () => {})), /f32/, /./, /./);
  check(failing((at, x, n, out) => ls.if(true, () => {})), /if on true/, /JavaScript's own if/);
  check(failing((at, x, n, out) => ls.while(n.lt(3), () => {})), /while on a value/, /a function/);
  check(failing((at, x, n, out) => ls.for(3, (i) => i)), /a block that returns a value/, /lockstep\.var/);
  check(failing((at, x, n, out) => {
    let inner;
    ls.for(n, (i) => { inner = i.add(1); });
    out.store(at, inner.cast("f32"));
  }), /./, /./, /./);
  const caught = failing((at, x, n, out) => {
    try {
      ls.if(n.lt(1), () => { throw new RangeError("inside"); });
    } catch { /* the block stays half-done */ }
  });
  assert.ok(caught instanceof RangeError, String(caught));
});

test("handles of another kernel, and none at all", () => {
  let value, point, buffer, variable, array;
  ls.kernel({ x: Grid("f32"), out: Out("f32") }, (at, x, out) => {
    [value, point, buffer, variable, array] = [x.load(at), at, x, ls.var(0), ls.local("f32", 2)];
    out.store(at, value);
  });
  check(failing((at, x, n, out) => out.store(at, value)), /a value of another kernel/, /this kernel/);
  check(failing((at, x, n, out) => out.store(at, x.load(point))), /a point of another kernel/, /being traced/);
  check(failing((at, x, n, out) => out.store(at, buffer.load(at))), /a buffer of another kernel/, /being traced/);
  check(failing((at, x, n, out) => out.store(at, variable.get())), /a variable of another kernel/, /being traced/);
  check(failing((at, x, n, out) => out.store(at, array.load(0))), /an array of another kernel/, /being traced/);
  for (const outside of [() => value.add(1), () => ls.sqrt(value), () => ls.var(0), () => ls.break(), () => point.x(1)])
    assert.throws(outside, (error) => (check(error, /an operation of kernels/, /lockstep\.kernel traces/), true));
});

test("devices, buffers and launches", async () => {
  await assert.rejects(ls.open("cuda"), (error) => error instanceof UnsupportedError && /cuda/.test(error.message));
  await assert.rejects(ls.open("gpu"), InputError);
  const copy = ls.kernel({ x: Grid("f32"), out: Out("f32"), n: "i32" }, (at, x, out) => out.store(at, x.load(at)), { name: "copy" });
  const x = device.array("f32", [4], [1, 2, 3, 4]), out = device.array("f32", 4), other = device.array("f64", 4);
  const wrong = (launch, pattern) => assert.throws(launch, (error) => error instanceof InputError && (assert.match(error.message, pattern), true));
  wrong(() => device.launch(copy, 4, x, out), /2 arguments.*x, out, n/);
  wrong(() => device.launch(copy, 4, { x, out, m: 1 }), /argument m/);
  wrong(() => device.launch(copy, 4, { x, out }), /argument n/);
  wrong(() => device.launch(copy, 4, x, out, 0.5), /0\.5/);
  wrong(() => device.launch(copy, 4, x, 3, 1), /argument out.*a buffer/);
  wrong(() => device.launch(copy, 4, x, other, 1), /f64/);
  wrong(() => device.launch(copy, 4, x, x, 1), /share|overlap|same/);
  wrong(() => device.launch(copy, [1, 2], x, out, 1), /rank|axes/);
  wrong(() => device.launch(copy, -1, x, out, 1), /shape -1/);
  wrong(() => device.launch({}, 4, x, out, 1), /no kernel/);
  wrong(() => device.array("f32", [2, 2], [1, 2, 3]), /3 elements/);
  wrong(() => x.upload(new Float64Array(4)), /Float64Array.*Float32Array/);
  wrong(() => x.upload(new Float32Array(5)), /5 elements/);
  wrong(() => device.array("f32", [1, 2, 3, 4, 5]), /shape/);
  await assert.rejects(device.dot(x), LockstepError);
  await assert.rejects(device.sum(device.array("u8", 3)), InputError);
  out.dispose();
  out.dispose();
  wrong(() => device.launch(copy, 4, x, out, 1), /no buffer/);
  await assert.rejects(out.download(), InputError);
  device.launch(copy, 4, x, device.array("f32", 4), 7);  // the core works on
});

test("memory of the page runs out", async () => {
  const interp = await ls.open("interp");
  for (const d of [device, interp]) {
    assert.throws(() => d.array("f64", [1 << 20, 1 << 12]), DeviceError);  // 2^35 bytes, which are 0 in 32 bits
    assert.throws(() => d.array("f64", [2 ** 40, 2 ** 40]), LockstepError);
    const held = [];
    assert.throws(() => { for (let k = 0; k < 64; ++k) held.push(d.array("f32", [1 << 27])); }, DeviceError);
    for (const buffer of held) buffer.dispose();
    assert.deepEqual(Array.from(await d.array("f32", 2, [1, 2]).download()), [1, 2]);
  }
});

test("numbers that an element type does not hold", () => {
  const refused = (type, list) => assert.throws(() => device.array(type, list.length, list), (error) => error instanceof InputError && /upload to a buffer/.test(error.message), `${type} ${list}`);
  for (const [type, list] of [["i32", [2.7]], ["i32", [2 ** 31]], ["i32", [NaN]], ["u32", [-1]], ["u8", [300]], ["i64", [1n << 63n]], ["u64", [-1n]], ["i64", [0.5]],
    ["f32", [null]], ["f32", ["1"]], ["f64", [[1]]], ["f16", [1.5]], ["bf16", [1]]]) refused(type, list);
});

test("numbers stored into bytes", () => {
  for (const value of [300, -1, 0.5])
    check(failing((at, out) => out.store(at, value), { out: Out("u8") }), /stored in out, of u8/, /0 to 255/);
  ls.kernel({ out: Out("u8") }, (at, out) => out.store(at, 255)).dispose();
});

test("numbers that an element type holds", async () => {
  for (const [type, list] of [["i32", [-(2 ** 31), 2n]], ["u32", [2 ** 32 - 1]], ["u8", [255]], ["i64", [-(1n << 63n), 5]], ["u64", [(1n << 64n) - 1n]], ["f32", [NaN, Infinity, -0.5]], ["f64", [0.1]]])
    assert.deepEqual(Array.from(await device.array(type, list.length, list).download(), String), list.map(String), type);
});

test("objects of another load()", async () => {
  const other = await load({ print: () => {} }), elsewhere = await other.open("cpu");
  const kernel = (core) => core.kernel({ x: Grid("f32"), out: Out("f32") }, (at, x, out) => out.store(at, x.load(at).add(1)));
  const here = device.array("f32", 3), there = elsewhere.array("f32", 3);
  const refused = (call) => assert.throws(call, (error) => error instanceof InputError && /of another load\(\)/.test(error.message));
  refused(() => device.launch(kernel(other), 3, here, here));
  refused(() => device.launch(kernel(ls), 3, there, here));
  refused(() => device.copy(there, here));
  refused(() => device.clear(there));
  await assert.rejects(device.sum(there), /of another load/);
  assert.throws(() => device.copy(kernel(ls), here), InputError);
  other.close();
});

test("options that nothing takes, and numbers that JSON lacks", async () => {
  check(failing((at, x, n, out) => out.store(at, 1), undefined, { groups: [64] }), /option groups/, /group/);
  for (const settings of [{ viscosity: NaN }, { dt: Infinity }, { seed: NaN }, { nx: NaN }])
    await assert.rejects(ls.flow({ nx: 32, ny: 32, device: "cpu", ...settings }), (error) => error instanceof InputError && /a finite number/.test(error.message));
  await assert.rejects(ls.flow({ nx: 32, ny: 32, device: "cpu", colour: null }), /option colour/);
  const flow = await ls.flow({ nx: 32, ny: 32, device: "cpu", viscosity: 1e-3, dt: 1e-3 });
  await assert.rejects(flow.change({ seed: 3 }), /option seed/);
  await assert.rejects(ls.forecast.curve({ step: [1, 2, 3, 4], loss: [4, 3, 2] }), /3 numbers of loss/);
  await assert.rejects(ls.open("cpu", { limit: {} }), /option limit/);
});
