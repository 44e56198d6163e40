// The loss head, by every gate warp for itself; lane j has chain j of the sums over states, every 32nd of them. Where
// all of h stays within 2 (BOUNDED), softmax needs no maximum (softmax_shift of heads.hpp); where bits are free as well,
// lanes are added as integers by one instruction.
constexpr bool kIntegers = BOUNDED && FAST;
constexpr int kStates = (STATES + 31) / 32;
#if TENSOR
constexpr int kHeadColumns = HIDDEN / 32 / kGateWarps;  // of a lane: a quarter of h a warp
#else
constexpr int kHeadColumns = HIDDEN / 32;
#endif

FN float warp_max(float v) {
  const int bits = __float_as_int(v), order = __reduce_max_sync(~0u, bits ^ ((bits >> 31) & 0x7fffffff));
  return __int_as_float(order ^ ((order >> 31) & 0x7fffffff));
}
FN float bf16_low(u32 word) { return __uint_as_float(word << 16); }
FN float bf16_high(u32 word) { return __uint_as_float(word & 0xffff0000u); }

// Two levels of a tree over lanes at once: those `far` apart first.
FN float two_levels(float v, int far, int near) {
  const float a = __shfl_xor_sync(~0u, v, far), b = __shfl_xor_sync(~0u, v, near),
              c = __shfl_xor_sync(~0u, v, far + near);
  return (v + a) + (b + c);
}
FN float warp_sum(float v) {
  v = two_levels(two_levels(v, 16, 8), 4, 2);
  return v + __shfl_xor_sync(~0u, v, 1);
}
// Of v within 2^30 / 32.
FN float fixed_sum(float v) { return float(__reduce_add_sync(~0u, __float2int_rn(v))); }
// The largest power of two that keeps v below `limit`, itself one.
FN float scale_below(float limit, float v) {
  const int exponent = (__float_as_int(max_(v, 0x1p-60f)) >> 23) - 127;
  return limit * 0.5f * __int_as_float((127 - exponent) << 23);
}

struct Head {
  float weight[kHeadColumns], state_weight[kStates];
  float dot_unit, state_unit;  // the meaning of 1 in the integers
  int lane, warp;
  u32 logit_at[kStates];  // bytes from the start of a vector

  FN int state(int k) const { return lane + 32 * k; }
  // Row of column c.
  FN int row(int c) const {
#if TENSOR
    const int word = 128 * warp + 4 * lane + c / 2;
    return word / 32 * 64 + word % 32 + c % 2 * 32;
#else
    return lane + 32 * c;
#endif
  }
  FN void load(const Arguments& a) {
    lane = int(threadIdx.x) & 31, warp = (int(threadIdx.x) >> 5) - kRowWarps;
#pragma unroll
    for (int c = 0; c < kHeadColumns; ++c) weight[c] = __ldg(a.b4 + row(c));
#pragma unroll
    for (int k = 0; k < kStates; ++k) {
      const int i = state(k), from = min(i, STATES - 1) * HIDDEN / STATES;
      state_weight[k] = i < STATES ? __ldg(a.b4 + HIDDEN + i) : 0.0f;
      logit_at[k] = TENSOR ? (from / 64 * 32 + from % 32) * 4 + from / 32 % 2 * 2 : place_of(from) * 4;
    }
    if (kIntegers) scale();
  }
  FN void scale() {
    float sum = 0.0f, top = 0.0f;
#pragma unroll
    for (int c = 0; c < kHeadColumns; ++c) sum += fabsf(weight[c]);
#pragma unroll
    for (int k = 0; k < kStates; ++k) top = max_(top, fabsf(state_weight[k]));
    const float dot_scale = scale_below(0x1p30f, 2.0f * warp_sum(sum)),
                state_scale = scale_below(1.0f, warp_max(top));
    dot_unit = 1.0f / dot_scale, state_unit = 1.0f / state_scale;
#pragma unroll
    for (int c = 0; c < kHeadColumns; ++c) weight[c] *= dot_scale;
#pragma unroll
    for (int k = 0; k < kStates; ++k) state_weight[k] *= state_scale;
  }
  FN float element(const Vector& h, u32 at) const {
#if TENSOR
    const auto half = [&](const u32* words) {
      return __uint_as_float(
          u32(*reinterpret_cast<const unsigned short*>(reinterpret_cast<const char*>(words) + at)) << 16);
    };
    return half(h.high) + half(h.low);
#else
    return *reinterpret_cast<const float*>(reinterpret_cast<const char*>(h.value) + at);
#endif
  }
  FN void columns(float (&x)[kHeadColumns], const Vector& h) const {
#if TENSOR
    const uint4 high = reinterpret_cast<const uint4*>(h.high)[32 * warp + lane],
                low = reinterpret_cast<const uint4*>(h.low)[32 * warp + lane];
    const u32 a[4] = {high.x, high.y, high.z, high.w}, b[4] = {low.x, low.y, low.z, low.w};
#pragma unroll
    for (int k = 0; k < 4; ++k)
      x[2 * k] = bf16_low(a[k]) + bf16_low(b[k]), x[2 * k + 1] = bf16_high(a[k]) + bf16_high(b[k]);
#else
#pragma unroll
    for (int p = 0; p < kHeadColumns / 4; ++p) {
      const float4 v = reinterpret_cast<const float4*>(h.value)[32 * p + lane];
      x[4 * p] = v.x, x[4 * p + 1] = v.y, x[4 * p + 2] = v.z, x[4 * p + 3] = v.w;
    }
#endif
  }
};

// Read off h by the head: of a lane, and the sums over lanes.
struct HeadSums {
  float x[kHeadColumns], below[kStates], e[kStates];
  float dot, e_sum, e_weighted;
};
// e of all states; for integers times kUnit, so that 32 lanes do not overflow.
constexpr int kUnitBits = kIntegers ? 22 - (kStates > 1) - (kStates > 2) - (kStates > 4) - (kStates > 8) : 0;
constexpr float kUnit = 1 << kUnitBits;
static_assert(!kIntegers || kStates <= 16, "32 lanes' integers do not overflow");
FN float exp_of_logit(float below) {
  return BOUNDED && !FAST ? exp_clipped(below) : exp_below(below, kUnitBits);
}
// Of the products with h; two levels of their tree run beside the exponentials.
FN void lane_dot(HeadSums& j, const Head& head) {
  j.dot = 0.0f;
#pragma unroll
  for (int c = 0; c < kHeadColumns; ++c) j.dot = fma_(j.x[c], head.weight[c], j.dot);
  if (!kIntegers) j.dot = two_levels(j.dot, 16, 8);
}
FN void lane_sums(HeadSums& j, const Head& head, const Vector& h) {
  float logit[kStates], top = 0.0f;
#pragma unroll
  for (int k = 0; k < kStates; ++k) {
    logit[k] = head.element(h, head.logit_at[k]);
    top = k == 0 ? logit[0] : fmaxf(top, logit[k]);
  }
  head.columns(j.x, h);
  lane_dot(j, head);
  if (!BOUNDED) top = warp_max(top);
  if (BOUNDED || fabsf(top) <= 8.0f) top = 0.0f;
  j.e_sum = j.e_weighted = 0.0f;
#pragma unroll
  for (int k = 0; k < kStates; ++k) {
    j.below[k] = logit[k] - top;
    j.e[k] = head.state(k) < STATES ? exp_of_logit(j.below[k]) : 0.0f;
    j.e_sum += j.e[k];
    j.e_weighted = fma_(j.e[k], head.state_weight[k], j.e_weighted);
  }
  if (!kIntegers) j.e_sum = two_levels(j.e_sum, 16, 8), j.e_weighted = two_levels(j.e_weighted, 16, 8);
}
FN float lane_square(const HeadSums& j) {
  float square = 0.0f;
#pragma unroll
  for (int c = 0; c < kHeadColumns; ++c) square = fma_(j.x[c], j.x[c], square);
  return square;
}
// On tensor cores the warps have a quarter of the products each.
FN void add_quarters(HeadSums& j, const Head& head, Shared& s, int step, bool recorder) {
  const float square = recorder ? warp_sum(lane_square(j)) : 0.0f;
  float2* quarter = s.quarter[step & 1];
  if (head.lane == 0) quarter[head.warp] = make_float2(j.dot, square);
  gate_warps_meet();
  j.dot = (quarter[0].x + quarter[1].x) + (quarter[2].x + quarter[3].x);
}
// Over the lanes.
FN void head_sums(HeadSums& j, const Head& head, Shared& s, int step, bool recorder) {
  if (kIntegers) {  // integers know no NaN
    const bool nan = __any_sync(~0u, j.dot != j.dot);
    j.dot = nan ? j.dot * __int_as_float(0x7fc00000) : fixed_sum(j.dot) * head.dot_unit;
    j.e_sum = fixed_sum(j.e_sum), j.e_weighted = fixed_sum(j.e_weighted) * head.state_unit;
  } else {
#pragma unroll
    for (int half = 4; half > 0; half /= 2) {
      const float dot = __shfl_xor_sync(~0u, j.dot, half), sum = __shfl_xor_sync(~0u, j.e_sum, half),
                  weighted = __shfl_xor_sync(~0u, j.e_weighted, half);
      j.dot += dot, j.e_sum += sum, j.e_weighted += weighted;
    }
  }
  if (TENSOR) add_quarters(j, head, s, step, recorder);
}
FN float loss_of(const HeadSums& j) {
  // No less than e^-10, so above the floor of 1e-6.
  return exp_clipped(max_(min_(fma_(j.e_weighted, inverse(j.e_sum), j.dot), 10.0f), -10.0f));
}

// Of step t block 0 keeps for the results: all but the norm, and the norm.
FN void record_loss(const HeadSums& j, const Head& head, Shared& s, float loss, int t) {
  float logs = 0.0f;
#pragma unroll
  for (int k = 0; k < kStates; ++k) logs = fma_(j.e[k], j.below[k], logs);
  logs = warp_sum(logs);
  if (head.lane == 0)
    s.kept[0][t & 31] = loss, s.kept[1][t & 31] = j.e_sum / kUnit, s.kept[2][t & 31] = logs / kUnit;
}
FN void record_norm(const HeadSums& j, const Head& head, Shared& s, int t) {
#if TENSOR
  const float2* quarter = s.quarter[(t + 1) & 1];
  const float square = (quarter[0].y + quarter[1].y) + (quarter[2].y + quarter[3].y);
#else
  const float square = warp_sum(lane_square(j));
#endif
  if (head.lane == 0) s.kept[3][t & 31] = square;
}
// Up to 32 steps to the results, the last of them t; by the warp that kept them.
FN void write_losses(const Arguments& a, const Shared& s, int group, int t) {
  const int lane = int(threadIdx.x) & 31;
  __syncwarp();
  if (lane <= (t & 31)) {
    float* out = a.b9 + i64(group) * a.b9_s1 + (t & ~31) + lane;
    out[0] = s.kept[0][lane];
    out[2 * i64(a.b9_s0)] = log_(s.kept[1][lane]) - divide(s.kept[2][lane], s.kept[1][lane]);
  }
  __syncwarp();
}
FN void write_norms(const Arguments& a, const Shared& s, int group, int t) {
  const int lane = int(threadIdx.x) & 31;
  __syncwarp();
  if (lane <= (t & 31)) a.b9[a.b9_s0 + i64(group) * a.b9_s1 + (t & ~31) + lane] = __fsqrt_rn(s.kept[3][lane]);
  __syncwarp();
}
