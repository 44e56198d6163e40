// a b + c with one rounding, for f64 whose exponents the generated code does not handle itself; as the core's own function does it.

const view = new DataView(new ArrayBuffer(8));
/** A finite number as a whole number times a power of two: [whole, power]. */
function split(x) {
  view.setFloat64(0, x);
  const bits = view.getBigUint64(0), exponent = Number(bits >> 52n) & 2047, digits = bits & 0xfffffffffffffn;
  const whole = exponent ? digits | 0x10000000000000n : digits;
  return [x < 0 ? -whole : whole, Math.max(exponent, 1) - 1075];
}

export function fma(a, b, c) {
  if (!Number.isFinite(a) || !Number.isFinite(b) || a === 0 || b === 0) return a * b + c;
  if (!Number.isFinite(c)) return c;
  if (c === 0) return a * b;
  const [x, xPower] = split(a), [y, yPower] = split(b), [z, zPower] = split(c);
  const power = Math.min(xPower + yPower, zPower);
  const sum = ((x * y) << BigInt(xPower + yPower - power)) + (z << BigInt(zPower - power));
  if (sum === 0n) return 0;
  const size = sum < 0n ? -sum : sum, length = size.toString(2).length;
  const last = Math.max(length + power - 53, -1074), by = BigInt(Math.max(last - power, 0));
  let kept = size >> by;
  if (by > 0n) {
    const rest = size - (kept << by), half = 1n << (by - 1n);
    if (rest > half || (rest === half && kept & 1n)) ++kept;
  }
  const exact = by > 0n ? last : power;
  const scaled = exact > 971 ? Infinity : Number(kept) * 2 ** exact;
  return sum < 0n ? -scaled : scaled;
}
