// What the page's WebAssembly engine does beyond the core's own needs.

/** A module with the function "f32" or "f64": madd of relaxed SIMD in the first lane. */
function madd(kind) {
  const [type, splat, fused, extract] = kind === "f32" ? [0x7d, 0x13, 0x85, 0x1f] : [0x7c, 0x14, 0x87, 0x21];
  const operand = (k) => [0x20, k, 0xfd, splat], code = [0, ...operand(0), ...operand(1), ...operand(2), 0xfd, fused, 2, 0xfd, extract, 0, 0x0b];
  return new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 8, 1, 0x60, 3, type, type, type, 1, type, 3, 2, 1, 0,
    7, 7, 1, 3, ...new TextEncoder().encode(kind), 0, 0, 10, code.length + 2, 1, code.length, ...code]);
}

// Sums that differ where the product is rounded, where the sum is rounded to f64 before f32, and where subnormal numbers become 0.
const e = (power) => 2 ** power;
const triples = {
  f32: [[1 + e(-12), 1 + e(-12), -1 - e(-11), e(-24)], [24929 * e(-14), 673 * e(-10), e(-80), 1 + e(-23)], [e(-100), e(-40), 0, e(-140)]],
  f64: [[1 + e(-27), 1 + e(-27), -1 - e(-26), e(-54)], [1 + e(-52), 1 - e(-53), -1, e(-53) - e(-105)], [e(-1000), e(-60), 0, e(-1060)]],
};

const probe = () => Object.entries(triples).every(([kind, sums]) => {
  const bytes = madd(kind);
  if (!WebAssembly.validate(bytes)) return false;
  const f = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports[kind];
  return sums.every(([a, b, c, sum]) => f(a, b, c) === sum);
});

let found;
/** Whether a b + c of relaxed SIMD has one rounding here, for both types. An engine's choice holds while a program runs (WebAssembly 3.0,
 * "Relaxed Operations"), so a few sums decide, once. */
export const fuses = () => (found ??= probe());
