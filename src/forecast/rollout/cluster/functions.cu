// Elementary functions: those of the portable kernels (`lockstep emit math.sigmoid --target cuda`), bit for
// bit, with what is known of the arguments here left out; in fast numerics the hardware's.
FN float fma_(float a, float b, float c) { return __fmaf_rn(a, b, c); }
FN float min_(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
FN float max_(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
#if FAST
FN float divide(float a, float b) { return a * approximate_inverse(b); }
FN float inverse(float b) { return approximate_inverse(b); }
FN float exp_below(float x, int bits) { return ex2(fma_(x, 1.4426950408889634f, bits)); }
FN float exp_clipped(float x) { return fast_exp(x); }
FN float sigmoid_(float x) { return fast_sigmoid(x); }
FN float tanh_(float x) { return fast_tanh(x); }
FN float log_(float x) { return __logf(x); }
#else
// Correctly rounded for b from 2^-20 to 2^100 and a that is 0 or not tiny: the steps of the division without
// its branch for other operands.
FN float divide(float a, float b) {
  float r = approximate_inverse(b);
  r = fma_(r, fma_(-b, r, 1.0f), r);
  float q = a * r;
  q = fma_(r, fma_(-b, q, a), q);
  return fma_(r, fma_(-b, q, a), q);
}
// 1 / b correctly rounded, for every b from 2^-100 to 2^100: one step suffices for each of the 2^23 fractions on
// sm_90.
FN float inverse(float b) {
  const float r = approximate_inverse(b);
  return fma_(r, fma_(-b, r, 1.0f), r);
}
// e^x = (1 + r + tail) 2^n; n also as an integer. Rounded by addition, to even as rint does.
struct ExpParts {
  float r, tail;
  int n;
};
FN ExpParts exp_parts(float c) {
  const float shifted = c * 0x1.715476p+0f + 0x1.8p+23f, n = shifted - 0x1.8p+23f,
              v = fma_(n, -0x1.62e43p-1f, c);
  const float r = fma_(n, 0x1.05c61p-29f, v);
  const float p = fma_(fma_(fma_(r, 0x1.6d9b5cp-10f, 0x1.123feep-7f), r, 0x1.5554bap-5f), r, 0x1.555488p-3f);
  return {r, fma_(r * r, fma_(p, r, 0x1p-1f), fma_(n, 0x1.05c61p-29f, v - r)),
          __float_as_int(shifted) - 0x4b400000};
}
FN float power_of_two(int n) { return __int_as_float((n + 127) << 23); }
// e^x for x up to 88 in size: 2^n is a normal number.
FN float exp_clipped(float x) {
  const ExpParts e = exp_parts(x);
  return (e.r + e.tail + 1.0f) * power_of_two(e.n);
}
// e^x for x <= 0, by two factors: the first product is exact. In fast numerics times 2^bits.
FN float exp_below(float x, int) {
  const ExpParts e = exp_parts(max_(x, -0x1.ap+6f));
  const int half = e.n >> 1;
  return (e.r + e.tail + 1.0f) * power_of_two(half) * power_of_two(e.n - half);
}
FN float sigmoid_(float x) {
  const ExpParts parts = exp_parts(max_(-fabsf(x), -0x1.ap+6f));
  const int half = parts.n >> 1;
  const float q = parts.r + parts.tail, p = q + 1.0f, s1 = power_of_two(parts.n - half),
              s0 = power_of_two(half);
  const float e = p * s0 * s1, low = (q - (p - 1.0f) + (parts.tail - (q - parts.r))) * s0 * s1;
  const float d =
      fma_(p, power_of_two(max(parts.n, -126)), 1.0f);  // e + 1: p 2^n is exact, or too small to count
  const float i = inverse(d), top = 0.0f <= x ? 1.0f : e, quotient = top * i;
  const float rest = fma_(-quotient, d, top) + fma_(-quotient, e - (d - 1.0f) + low, 0.0f <= x ? 0.0f : low);
  return fma_(rest, i, quotient);
}
FN float tanh_(float x) {
  const float m = fabsf(x), z = m * m;
  const float p = fma_(fma_(fma_(z, -0x1.948c18p-8f, 0x1.5818a8p-6f), z, -0x1.b90628p-5f), z, 0x1.110c5ep-3f);
  const ExpParts e = exp_parts(min_(m, 10.0f) * 2.0f);
  const float d = fma_(e.r + e.tail + 1.0f, power_of_two(e.n), 1.0f);  // e^2m + 1, rounded once
  const float large = fma_(-2.0f, inverse(d), 1.0f);                   // 1 from 9.02 on
  return copysignf(m < 0.5625f ? m + m * z * fma_(p, z, -0x1.555548p-2f) : large, x);
}
FN float log_(float x) {
  const int bits = __float_as_int(x), n = (bits - 1060439283) >> 23;
  const float k = float(n), f = __int_as_float(bits - (n << 23)) - 1.0f, f2 = f * f;
  float p = fma_(fma_(fma_(f, 0x1.b6792ap-5f, -0x1.bf6b5ap-4f), f, 0x1.efda6ap-4f), f, -0x1.00fbbap-3f);
  p = fma_(fma_(fma_(p, f, 0x1.23042ap-3f), f, -0x1.552fbcp-3f), f, 0x1.99a53cp-3f);
  p = fma_(f2 * f, fma_(fma_(p, f, -0x1.00006ep-2f), f, 0x1.555548p-2f), f2 * -0.5f);
  return fma_(k, 0x1.62e43p-1f, f + fma_(k, -0x1.05c61p-29f, p));
}
#endif
