// The kernels of native_kernels.py, written for a page.
import { Grid, InOut, Out } from "./site.mjs";

export const count = 1003, rows = 37, columns = 53;

/** The same 32-bit words in both languages. */
export function words(size, seed) {
  return Uint32Array.from({ length: size }, (_, k) => {
    let w = Math.imul(k + seed, 2654435761) >>> 0;
    w ^= w >>> 15;
    return Math.imul(w, 2246822519) >>> 0;
  });
}
/** In [-2, 2), exact in f32. */
export const floats = (size, seed) => Float32Array.from(words(size, seed), (w) => (w >>> 8) * 2 ** -22 - 2);

/** What a test launches: kernel, extent, buffers in their order (the last is the result), numbers. */
export function problems(ls) {
  const x = () => ["f32", [count], floats(count, 7)], w = () => ["u32", [count], words(count, 99)];
  return {
    heat: [heat(ls), [rows, columns], [["f32", [rows, columns], floats(rows * columns, 1)], ["f32", [rows, columns]]], [0.1]],
    functions: [functions(ls), [count], [x(), ["f32", [12, count]]], []],
    doubles: [doubles(ls), [count], [x(), ["f64", [count]]], []],
    escape: [escape(ls), [rows, columns], [["i32", [rows, columns]]], [60]],
    bits: [bits(ls), [count], [w(), ["u32", [count]]], []],
    gathered: [gathered(ls), [count], [x(), ["f32", [count]]], []],
    counted: [counted(ls), [count], [w(), ["u32", [16]]], []],
    sums: [sums(ls), [16], [x(), ["f32", [1024]]], []],
  };
}

export const heat = (ls) =>
  ls.kernel({ t: Grid("f32", 2), out: Out("f32", 2), a: "f32" }, function heat(at, t, out, a) {
    const around = t.load(at.x(1)).add(t.load(at.x(-1))).add(t.periodic().load(at.y(1))).add(t.zero().load(at.y(-1)));
    out.store(at, t.load(at).add(a.mul(around.sub(t.load(at).mul(4)))));
  });

const functions = (ls) =>
  ls.kernel({ x: Grid("f32"), out: Out("f32", 2) }, function functions(at, x, out) {
    const v = x.load(at.x());
    const all = [
      v.exp(), v.mul(100).sin(), v.abs().add(1).log(), v.abs().pow(1.7), v.tanh(), v.erf(),
      v.atan2(0.3), ls.hypot(v, 2), v.mul(3).rint(), ls.fma(v, v, -1), v.powi(3), v.abs().sqrt(),
    ];
    all.forEach((value, k) => out.store(k, at, value));
  }, { rank: 1 });

const doubles = (ls) =>
  ls.kernel({ x: Grid("f32"), out: Out("f64") }, function doubles(at, x, out) {
    const v = x.load(at).cast("f64");
    out.store(at, v.exp().mul(v.cos()).add(v.div(3)).sub(ls.fma(v, 0.1, v)));
  });

const escape = (ls) =>
  ls.kernel({ out: Out("i32", 2), limit: "i32" }, function escape(at, out, limit) {
    const cx = at.x().cast("f32").mul(0.0625).sub(2), cy = at.y().cast("f32").mul(0.0625).sub(1);
    const x = ls.var(0), y = ls.var(0), n = ls.var(0, "i32");
    const square = (v) => v.get().mul(v);
    ls.while(() => n.get().lt(limit).and(square(x).add(square(y)).lt(4)), () => {
      const next = square(x).sub(square(y)).add(cx);
      y.set(x.get().mul(2).mul(y).add(cy));
      x.set(next);
      n.add(1);
    });
    ls.if(n.get().eq(limit), () => out.store(at, -1), () => out.store(at, n));
  });

const bits = (ls) =>
  ls.kernel({ x: Grid("u32"), out: Out("u32") }, function bits(at, x, out) {
    const h = ls.var(x.load(at));
    ls.for(1, 9, 2, (i) => {
      h.set(h.get().xor(h.get().shr(13)).mul(1540483477).add(i.cast("u32")));
      ls.if(h.get().mod(7).eq(3), () => ls.continue());
      h.set(h.get().or(h.get().shl(5)));
    });
    out.store(at, h.get().xor(ls.popcount(h)));
  });

const gathered = (ls) =>
  ls.kernel({ x: Grid("f32"), out: Out("f32") }, function gathered(at, x, out) {
    const last = ls.local("f32", 4);
    for (let k = 0; k < 4; ++k) last.store(k, x.clamped().load(at.x().mul(3).sub(5).add(k)));
    const total = ls.var(0);
    ls.for(4, (i) => total.add(last.load(i).gt(0.5).select(last.load(i), last.load(i).mul(0.25))));
    out.store(at, total.get().add(x.load(at).bitcast("u32").and(0xff).or(0x3f800000).bitcast("f32")));
  });

const counted = (ls) =>
  ls.kernel({ x: Grid("u32"), out: InOut("u32") }, function counted(at, x, out) {
    out.atomic("add", x.load(at).mod(16).cast("i32"), 1);
  });

const sums = (ls) =>
  ls.kernel({ x: Grid("f32"), out: Out("f32") }, function sums(group, x, out) {
    const shared = ls.shared("f32", 64), lane = group.lane(), mirrored = ls.cast(63, "i32").sub(lane);
    shared.store(lane, x.zero().load(group.global()));
    ls.barrier();
    out.store(group.id().mul(64).add(lane), ls.group_sum(shared.load(mirrored).mul(shared.load(lane))).add(shared.load(mirrored)));
  }, { group: [64] });
