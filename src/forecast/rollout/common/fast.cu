// The hardware's elementary functions, for fast numerics.
FN float approximate_inverse(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
FN float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
FN float fast_exp(float x) { return ex2(x * 1.4426950408889634f); }
FN float fast_sigmoid(float x) { return approximate_inverse(1.0f + ex2(x * -1.4426950408889634f)); }
FN float fast_tanh(float x) {
  return __fmaf_rn(-2.0f, approximate_inverse(1.0f + ex2(x * 2.8853900817779268f)), 1.0f);
}
