// Kernels on "cpu" that read and write outside of their arrays: the launch is an error that says where, and nothing else changes.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { DeviceError, Grid, InOut, load, Out, untilWorkers } from "./site.mjs";

const count = 64, canary = 0x5a5a5a5a;
const outside = [count, -1, count + 1, 4096, 2 ** 20, 2 ** 28, 2 ** 29, 2 ** 30, 2 ** 31 - 1, -(2 ** 31), -(2 ** 30), -4096, -64];

for (const threads of [1, 3]) {
  const name = `${threads} thread${threads > 1 ? "s" : ""}`;
  let ls, device;
  before(async () => {
    ls = await load({ print: () => {}, threads });
    await ls.threads();
    device = await ls.open("cpu");
  });

  /** Launches with neighbours in memory that nobody may touch; the error. */
  function failing(kernel, extent, ...given) {
    const neighbours = [0, 1].map(() => device.array("u32", 1 << 14, new Uint32Array(1 << 14).fill(canary)));
    let error;
    assert.throws(() => device.launch(kernel, extent, ...given), (thrown) => (error = thrown) instanceof DeviceError);
    return Promise.all(neighbours.map(async (one) => {
      assert.ok((await one.download()).every((word) => word === canary), "a neighbour changed");
      one.dispose();
    })).then(() => error);
  }
  const places = (values) => device.array("i32", values.length, Int32Array.from(values));

  test(`${name}: rows, lanes and single elements of every width`, async () => {
    for (const type of ["f32", "f64", "u8", "f16"]) {
      const far = ls.kernel({ out: Out(type), by: "i32" }, (at, out, by) => out.store(at.x().add(by), 1), { name: "row" });
      const one = ls.kernel({ out: Out(type), by: "i32" }, (at, out, by) => out.store(by, 1), { name: "one" });
      const scattered = ls.kernel({ place: Grid("i32"), out: Out(type) }, (at, place, out) => out.store(place.load(at), 1), { name: "lanes" });
      const gathered = ls.kernel({ place: Grid("i32"), x: Grid(type), out: Out(type) }, (at, place, x, out) => out.store(at, x.load(place.load(at))), { name: "reads" });
      const out = device.array(type, count), x = device.array(type, count);
      for (const by of outside) {
        assert.match((await failing(far, count, out, by)).message, /kernel row: element -?\d+ of buffer b\d, which has 64, near bounds\.test\.mjs:\d+/);
        assert.match((await failing(one, count, out, by)).message, new RegExp(`kernel one: element ${by} of buffer b\\d`));
        const at = places(Array.from({ length: count }, (_, k) => (k === 37 ? by : k)));
        assert.match((await failing(scattered, count, at, out)).message, new RegExp(`kernel lanes: element ${by} of buffer b\\d, which has 64`));
        assert.match((await failing(gathered, count, at, x, out)).message, new RegExp(`kernel reads: element ${by} of buffer b1`));
        at.dispose();
      }
      device.launch(far, count, out, 0);
      device.launch(one, count, out, count - 1);
      assert.ok((await out.download()).every((value) => value !== 0), "the device works on");
      for (const buffer of [out, x]) buffer.dispose();
    }
  });

  test(`${name}: rows that leave the buffer at their beginning, inside and at their end`, async () => {
    // Element 20 y + x + by of 64, for points of 3 rows of 20.
    const flat = ls.kernel({ out: Out("f32"), by: "i32" }, (at, out, by) => out.store(at.y().mul(20).add(at.x()).add(by), at.x().add(1).cast("f32")), { name: "flat", rank: 2 });
    const around = ls.kernel({ x: Grid("f32"), out: Out("f32"), by: "i32" }, (at, x, out, by) => {
      const i = at.y().mul(20).add(at.x());
      out.store(i, x.load(i.add(by)).add(x.load(i.sub(by))));
    }, { name: "around", rank: 2 });
    const run = (by) => {
      const out = device.array("f32", count);
      return [out, failing(flat, [3, 20], out, by)];
    };
    for (const by of [5, 10, 23, 24, 43, 44, 63]) {
      const [out, failed] = run(by), { message } = await failed;
      const element = Number(/kernel flat: element (-?\d+) of buffer b\d, which has 64, near bounds/.exec(message)[1]);
      assert.ok(element > 60 && element <= 64, message);  // the first of a vector
      if (threads > 1) continue;
      const written = await out.download();
      for (let k = by; k < 61; ++k) assert.equal(written[k], ((k - by) % 20) + 1, `element ${k}, moved by ${by}`);
    }
    for (const by of [-1, -7, -19, -20, -59]) assert.match((await run(by)[1]).message, new RegExp(`kernel flat: element ${by} of`));
    const out = device.array("f32", count), x = device.array("f32", count, Float32Array.from({ length: count }, (_, k) => k));
    for (const by of [1, -1, 5, -64, 2 ** 30]) assert.match((await failing(around, [3, 20], x, out, by)).message, /kernel around: element -?\d+ of buffer b0/);
    device.launch(around, [3, 20], x, out, 0);
    assert.ok((await out.download()).every((value, k) => value === (k < 60 ? 2 * k : 0)));
    const all = device.array("f32", count);
    device.launch(flat, [3, 20], all, 4);
    assert.ok((await all.download()).every((value, k) => value === (k < 4 ? 0 : ((k - 4) % 20) + 1)));
  });

  test(`${name}: positions made of NaN and infinities, and ragged ends`, async () => {
    const by = ls.kernel({ x: Grid("f32"), out: Out("f32") }, (at, x, out) => out.store(x.load(at).cast("i32"), 1));
    const out = device.array("f32", 61);
    const of = (value) => device.array("f32", 61, new Float32Array(61).fill(value));
    device.launch(by, 61, of(NaN), out);  // NaN as a whole number is 0
    assert.deepEqual((await out.download()).slice(0, 2), Float32Array.of(1, 0));
    for (const [value, element] of [[Infinity, 2147483647], [-Infinity, -2147483648], [1e30, 2147483647], [61, 61], [-1, -1]])
      assert.match((await failing(by, 61, of(value), out)).message, new RegExp(`element ${element} of buffer b\\d, which has 61`));
    const last = ls.kernel({ out: Out("f32") }, (at, out) => out.store(at.x().add(1), 1));
    assert.match((await failing(last, 61, out)).message, /element (58|59|60|61) of/);
  });

  test(`${name}: lanes that are off do not count, and an axis too long within the buffer is none of this`, async () => {
    const guarded = ls.kernel({ place: Grid("i32"), out: Out("f32") }, (at, place, out) => {
      const i = place.load(at);
      ls.if(i.ge(0).and(i.lt(out.size(0))), () => out.store(i, 2));
    });
    const out = device.array("f32", count);
    device.launch(guarded, outside.length, places(outside), out);
    assert.ok((await out.download()).every((value) => value === 0));
    device.launch(guarded, 4, places([-1, 5, count, 63]), out);
    assert.equal((await out.download()).reduce((a, b) => a + b), 4);
  });

  test(`${name}: shared and local arrays, atomics`, async () => {
    const out = device.array("i32", count);
    const shared = ls.kernel({ out: Out("i32"), by: "i32" }, (group, out, by) => {
      const s = ls.shared("i32", 64);
      s.store(group.lane().add(by), 7);
      ls.barrier();
      out.store(group.lane(), s.load(group.lane()));
    }, { group: [64] });
    const local = ls.kernel({ place: Grid("i32"), out: Out("i32") }, (at, place, out) => {
      const a = ls.local("i32", 5);
      a.store(0, 1);
      a.store(place.load(at), 3);
      out.store(at, a.load(0));
    });
    const added = ls.kernel({ place: Grid("i32"), out: InOut("i32") }, (at, place, out) => {
      out.atomic("add", place.load(at), 1);
    });
    for (const by of [64, -1, 1, 2 ** 30, -(2 ** 31)])
      assert.match((await failing(shared, 1, out, by)).message, /element -?\d+ of a shared or local array, which has 64/);
    for (const at of [5, -1, 2 ** 29, -(2 ** 31)]) {
      const place = places(new Array(count).fill(at));
      assert.match((await failing(local, count, place, out)).message, /of a shared or local array, which has 5/);
      const far = places(new Array(count).fill(at < 0 ? at : at + count));
      assert.match((await failing(added, count, far, out)).message, /of buffer b\d, which has 64/);
    }
  });

  test(`${name}: one point of a launch that is large enough for workers`, async () => {
    const many = 1 << 19, slow = ls.kernel({ out: Out("f32"), last: "i32" }, (at, out, last) => {
      const v = ls.var(0);
      ls.for(50, (i) => v.set(ls.fma(v, 0.5, at.x().cast("f32"))));
      out.store(at.x().eq(last).select(at.x().add(2 ** 30), at.x()), v.get());
    });
    const out = device.array("f32", many);
    assert.match((await failing(slow, many, out, many - 3)).message, new RegExp(`element ${many - 3 + 2 ** 30} of buffer b0, which has ${many}`));
    device.launch(slow, many, out, -1);
    assert.ok((await out.download()).at(-3) > many);
    if (threads > 1) assert.ok(await untilWorkers(ls, () => device.launch(slow, many, out, -1)) > 0);
    else assert.equal((await ls.threads()).byWorkers, 0);
    ls.close();
  });
}
