// All steps of a rollout by one cluster of 16 blocks: block b holds rows b H/16 … of U_z, U_r and U_h in registers and shared memory for the whole
// launch. A warp owns kWarpRows rows, its lane j the columns k = j, j + 32 …: the chains of kernels.hpp, and the same tree over them. r h and h go
// to all blocks by asynchronous stores that count their bytes on barriers of the receivers.
//
// Set before: HIDDEN, STATES, RESET_AFTER, FAST, HALF_WEIGHTS (bf16 in pairs), WARP_ROWS, SHARED_Z, SHARED_N (16-byte pieces of a lane, of
// kPieces kWarpRows, that stand in shared memory), SHARED_BYTES, ENTRY.
constexpr int kBlocks = 16, kRows = HIDDEN / kBlocks, kWarpRows = WARP_ROWS, kWarps = kRows / kWarpRows;
constexpr int kThreads = 32 * kWarps, kColumns = HIDDEN / 32, kWidth = HALF_WEIGHTS ? 8 : 4;
constexpr int kPieces = kColumns / kWidth, kSlots = 32 / kWarpRows, kSlotStride = kSlots == 8 ? 12 : 4;
constexpr int kOwn = kRows > 32 ? kRows / 32 : 1;            // rows of a lane after the sums
constexpr int kTargetsAtOnce = kRows > 32 ? 1 : 32 / kRows;  // blocks that one store of a warp reaches
constexpr int kSends = kBlocks / kWarps / kTargetsAtOnce;
constexpr bool kHeadInRegisters = kColumns <= 16;
constexpr u32 kVectorBytes = HIDDEN * 4;
static_assert(kRows % kWarpRows == 0 && kBlocks % (kWarps * kTargetsAtOnce) == 0 && kColumns % kWidth == 0,
              "");

struct __align__(16) Piece {
  u32 word[4];
};
struct Shared {
  float h[2][HIDDEN], rh[HIDDEN];
  unsigned long long arrived[3];                                      // of h (two buffers) and r h
  __align__(16) float sums[1 + RESET_AFTER][3][kRows * kSlotStride];  // read four at a time
  float pre[3][kRows];
  float kept[4][32];  // by the head, of 32 steps: loss; sums of e, of e times logit, of h squared
  float head[kHeadInRegisters ? 4 : HIDDEN];
  Piece weights[(SHARED_Z + SHARED_N) * kThreads + 1];
};

static_assert(sizeof(Shared) <= SHARED_BYTES, "the host allocates less");
constexpr u32 kStateAt = 0, kResetAt = 2 * kVectorBytes, kArrivedAt = 3 * kVectorBytes;  // in Shared

// Elementary functions: those of the portable kernels (`lockstep emit math.sigmoid --target cuda`), or the hardware's.
#define FN __device__ __forceinline__
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
FN float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
FN float inverse(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
FN float divide(float a, float b) { return a * inverse(b); }
FN float exp_(float x) { return ex2(x * 1.4426950408889634f); }
FN float sigmoid_(float x) { return inverse(1.0f + ex2(x * -1.4426950408889634f)); }
FN float tanh_(float x) { return fma_(-2.0f, inverse(1.0f + ex2(x * 2.8853900817779268f)), 1.0f); }
FN float log_(float x) { return __logf(x); }
#else
// Correctly rounded for b from 2^-20 to 2^100 and a that is 0 or not tiny: the steps of the division without its branch for other operands.
FN float divide(float a, float b) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  r = fma_(r, fma_(-b, r, 1.0f), r);
  float q = a * r;
  q = fma_(r, fma_(-b, q, a), q);
  return fma_(r, fma_(-b, q, a), q);
}
FN float power_of_two(float n) { return __uint_as_float(__float_as_uint(n + 0x1.8000fep+23f) << 23u); }
struct ExpParts {
  float n, r, tail;
};
FN ExpParts exp_parts(float x) {
  const float c = max_(min_(x, 0x1.66p+6f), -0x1.ap+6f), n = rintf(c * 0x1.715476p+0f),
              v = fma_(n, -0x1.62e43p-1f, c);
  const float r = fma_(n, 0x1.05c61p-29f, v);
  const float p = fma_(fma_(fma_(r, 0x1.6d9b5cp-10f, 0x1.123feep-7f), r, 0x1.5554bap-5f), r, 0x1.555488p-3f);
  return {n, r, fma_(r * r, fma_(p, r, 0x1p-1f), fma_(n, 0x1.05c61p-29f, v - r))};
}
FN float exp_(float x) {
  const ExpParts e = exp_parts(x);
  const float half = rintf(e.n * 0x1p-1f);
  return (e.r + e.tail + 1.0f) * power_of_two(half) * power_of_two(e.n - half);
}
FN float sigmoid_(float x) {
  const ExpParts parts = exp_parts(-fabsf(x));
  const float q = parts.r + parts.tail, p = q + 1.0f, half = rintf(parts.n * 0x1p-1f),
              s1 = power_of_two(parts.n - half), s0 = power_of_two(half);
  const float e = p * s0 * s1, low = (q - (p - 1.0f) + (parts.tail - (q - parts.r))) * s0 * s1;
  const float d = e + 1.0f, i = divide(1.0f, d), top = 0.0f <= x ? 1.0f : e, quotient = top * i;
  const float rest = fma_(-quotient, d, top) + fma_(-quotient, e - (d - 1.0f) + low, 0.0f <= x ? 0.0f : low);
  return fma_(rest, i, quotient);
}
FN float tanh_(float x) {
  const float m = fabsf(x), z = m * m;
  const float p = fma_(fma_(fma_(z, -0x1.948c18p-8f, 0x1.5818a8p-6f), z, -0x1.b90628p-5f), z, 0x1.110c5ep-3f);
  const float large = 1.0f - divide(2.0f, exp_(min_(m, 10.0f) * 2.0f) + 1.0f);  // 1 from 9.02 on
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

FN u32 address(const void* p) { return u32(__cvta_generic_to_shared(p)); }
FN u32 of_block(u32 local, u32 block) {
  u32 a;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(local), "r"(block));
  return a;
}
FN void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
FN void wait(u32 barrier, u32 phase) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra "
      "AGAIN_%=;\n}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
FN void store_async(u32 to, float v, u32 barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
               "r"(__float_as_uint(v)), "r"(barrier)
               : "memory");
}
FN float warp_max(float v) {
  const int bits = __float_as_int(v), order = __reduce_max_sync(~0u, bits ^ ((bits >> 31) & 0x7fffffff));
  return __int_as_float(order ^ ((order >> 31) & 0x7fffffff));
}

// Of a lane's columns of h: with the head's weights, and squared.
struct ColumnSums {
  float dot, square;
};
template <class X, class W>
FN ColumnSums column_sums(const X& column, const W& weight) {
  ColumnSums sums{0.0f, 0.0f};
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    sums.dot = fma_(column(c), weight(c), sums.dot);
    sums.square = fma_(column(c), column(c), sums.square);
  }
  return sums;
}

// kWarpRows rows times a vector: sums of a lane over its columns. Register row q holds row q ^ mask of the warp, so that the tree needs no selection.
FN void add_piece(float (&sum)[kWarpRows], int q, const Piece& w, const float* x) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#if HALF_WEIGHTS
    // The word is the weight of the odd column as f32; its lower half that of the even one. Volatile: 16-bit weights, widened ahead of all steps,
    // would not fit.
    float even;
    asm volatile("shl.b32 %0, %1, 16;" : "=f"(even) : "r"(w.word[j]));
    sum[q] = fma_(even, x[2 * j], sum[q]);
    sum[q] = fma_(__uint_as_float(w.word[j]), x[2 * j + 1], sum[q]);
#else
    sum[q] = fma_(__uint_as_float(w.word[j]), x[j], sum[q]);
#endif
  }
}
template <int In, class X>
FN float row_sums(const Piece (&held)[In > 0 ? In : 1], const Piece* rest, const X& x) {
  float sum[kWarpRows];
#pragma unroll
  for (int q = 0; q < kWarpRows; ++q) sum[q] = 0.0f;
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    float columns[kWidth];
#pragma unroll
    for (int j = 0; j < kWidth; ++j) columns[j] = x(p * kWidth + j);
#pragma unroll
    for (int q = 0; q < kWarpRows; ++q) {
      const int k = p * kWarpRows + q;
      add_piece(sum, q, k < In ? held[k < In ? k : 0] : rest[(k - In) * kThreads], columns);
    }
  }
#pragma unroll
  for (int n = kWarpRows / 2, half = 16; n > 0; n /= 2, half /= 2)
#pragma unroll
    for (int q = 0; q < n; ++q) sum[q] += __shfl_xor_sync(~0u, sum[q + n], half);
  return sum[0];
}

extern "C" __global__ void __cluster_dims__(16, 1, 1) __launch_bounds__(kThreads, 1)
    ENTRY(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(128) unsigned char raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw);
  const int thread = int(threadIdx.x), lane = thread & 31, warp = thread >> 5;
  u32 block;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  const int group = a.offset_x + int(blockIdx.x) / kBlocks, member = group / a.p0, entry = group % a.p0,
            place = member * kBlocks + int(block);
  const u32 base = address(raw), bars = base + kArrivedAt;
  if (thread == 0) {
    for (int k = 0; k < 3; ++k)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bars + 8 * k) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int k = 0; k < 3; ++k) expect(bars + 8 * k, kVectorBytes);
  }
  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");

  // Weights: (place, warp, gate, piece, row) lines of 32 pieces.
  const int mask = kWarpRows == 8 ? lane >> 2 : lane >> 3;
  constexpr int kHeldR = kPieces * kWarpRows, kHeldZ = kHeldR - SHARED_Z, kHeldN = kHeldR - SHARED_N;
  Piece wr[kHeldR], wz[kHeldZ > 0 ? kHeldZ : 1], wn[kHeldN > 0 ? kHeldN : 1];
  Piece *rest_z = s.weights + thread, *rest_n = rest_z + SHARED_Z * kThreads;
  const Piece* zr = reinterpret_cast<const Piece*>(a.b0) +
                    (i64(place) * kWarps + warp) * 2 * kPieces * kWarpRows * 32 + lane;
  const Piece* n =
      reinterpret_cast<const Piece*>(a.b1) + (i64(place) * kWarps + warp) * kPieces * kWarpRows * 32 + lane;
  const auto load = [](const Piece* from) {
    Piece w;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
                 : "l"(from));
    return w;
  };
  const auto line = [&](int k) { return (k / kWarpRows * kWarpRows + ((k % kWarpRows) ^ mask)) * 32; };
#pragma unroll 4
  for (int k = kHeldZ; k < kHeldR; ++k) rest_z[(k - kHeldZ) * kThreads] = load(zr + line(k));
#pragma unroll 4
  for (int k = kHeldN; k < kHeldR; ++k) rest_n[(k - kHeldN) * kThreads] = load(n + line(k));
#pragma unroll
  for (int k = 0; k < kHeldR; ++k) wr[k] = load(zr + kPieces * kWarpRows * 32 + line(k));
#pragma unroll
  for (int k = 0; k < kHeldZ; ++k) wz[k] = load(zr + line(k));
#pragma unroll
  for (int k = 0; k < kHeldN; ++k) wn[k] = load(n + line(k));

  for (int t = thread; t < 3 * kRows; t += kThreads) {  // W x + b without feature 0
    const int gate = t / kRows, row = t % kRows;
    float sum = __ldg(a.b3 + (place * 4 + gate) * kRows + row);
    const float *w = a.b2 + i64(place) * a.b2_n1 * (3 * kRows) + t, *x = a.b5 + i64(entry) * a.b5_s0;
#pragma unroll 8
    for (int i = 1; i < a.b2_n1; ++i) sum = fma_(__ldg(w + i * 3 * kRows), __ldg(x + i), sum);
    s.pre[gate][row] = sum;
  }
  for (int k = thread; k < HIDDEN; k += kThreads) {
    s.h[0][k] = __ldg(a.b6 + i64(member) * a.b6_s0 + k);
    if (!kHeadInRegisters) s.head[k] = __ldg(a.b4 + k);
  }
  float head_held[kHeadInRegisters ? kColumns : 1];
  if (kHeadInRegisters) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) head_held[kHeadInRegisters ? c : 0] = __ldg(a.b4 + lane + 32 * c);
  }
  // Lane j adds the chains j % 8 + {0, 8, 16, 24} of the state's sums by itself: two levels of their tree.
  constexpr int kStates = (STATES + 31) / 32;
  const auto state_of = [&](int chain, int k) { return (lane & 7) + 8 * chain + 32 * k; };
  float head_state[4][kStates];
#pragma unroll
  for (int chain = 0; chain < 4; ++chain)
#pragma unroll
    for (int k = 0; k < kStates; ++k)
      head_state[chain][k] = state_of(chain, k) < STATES ? __ldg(a.b4 + HIDDEN + state_of(chain, k)) : 0.0f;
  __syncthreads();

  float own[kOwn], pre[3][kOwn], column0[3][kOwn];
#if RESET_AFTER
  float after[kOwn];
#endif
  int row_of[kOwn];
#pragma unroll
  for (int o = 0; o < kOwn; ++o) {
    const int row = kRows > 32 ? lane + 32 * o : lane % kRows;
    row_of[o] = row;
    own[o] = s.h[0][int(block) * kRows + row];
#if RESET_AFTER
    after[o] = __ldg(a.b3 + (place * 4 + 3) * kRows + row);
#endif
#pragma unroll
    for (int g = 0; g < 3; ++g) {
      pre[g][o] = s.pre[g][row];
      column0[g][o] = __ldg(a.b2 + i64(place) * a.b2_n1 * (3 * kRows) + g * kRows + row);
    }
  }
  u32 target[kSends];
#pragma unroll
  for (int i = 0; i < kSends; ++i)
    target[i] =
        of_block(base, warp * (kBlocks / kWarps) + i * kTargetsAtOnce + (kRows > 32 ? 0 : lane / kRows));
  const auto send = [&](int o, float v, u32 offset, u32 barrier) {
#pragma unroll
    for (int i = 0; i < kSends; ++i)
      store_async(target[i] + offset + 4 * (block * kRows + row_of[o]), v,
                  target[i] + kArrivedAt + 8 * barrier);
  };
  const auto put = [&](int half, int gate, float v) {
    s.sums[half][gate][(warp * kWarpRows + mask) * kSlotStride + (lane & (kSlots - 1))] = v;
  };
  const auto get = [&](int half, int gate, int o) {
    const float4* line = reinterpret_cast<const float4*>(&s.sums[half][gate][row_of[o] * kSlotStride]);
    const float4 v = line[0];
    if (kSlots == 4) return (v.x + v.z) + (v.y + v.w);
    const float4 u = line[kSlots == 4 ? 0 : 1];
    return ((v.x + u.x) + (v.z + u.z)) + ((v.y + u.y) + (v.w + u.w));
  };
  float loss = __ldg(a.b5 + i64(entry) * a.b5_s0);
  const auto input_sum = [&](int gate, int o) { return fma_(column0[gate][o], loss, pre[gate][o]); };
  struct Head {
    float logit[4][kStates], top;
  };
  const auto head_begin = [&](const float* h) {
    Head head;
#pragma unroll
    for (int chain = 0; chain < 4; ++chain)
#pragma unroll
      for (int k = 0; k < kStates; ++k) {
        head.logit[chain][k] = h[min(state_of(chain, k), STATES - 1) * HIDDEN / STATES];
        head.top = chain + k == 0 ? head.logit[0][0] : fmaxf(head.top, head.logit[chain][k]);
      }
    head.top = warp_max(head.top);
    return head;
  };
  // The loss after step t; one warp keeps what else the head gives.
  const auto head_weight = [&](int c) {
    return kHeadInRegisters ? head_held[kHeadInRegisters ? c : 0]
                            : s.head[kHeadInRegisters ? 0 : lane + 32 * c];
  };
  const auto head_end = [&](const Head& head, int t, ColumnSums sums) {
    float sum[4], weighted[4], logs[4], dot = sums.dot, square = sums.square;
#pragma unroll
    for (int chain = 0; chain < 4; ++chain) {
      sum[chain] = weighted[chain] = logs[chain] = 0.0f;
#pragma unroll
      for (int k = 0; k < kStates; ++k) {
        const float below = head.logit[chain][k] - head.top,
                    e = state_of(chain, k) < STATES ? exp_(below) : 0.0f;
        sum[chain] += e;
        weighted[chain] = fma_(e, head_state[chain][k], weighted[chain]);
        logs[chain] = fma_(e, below, logs[chain]);
      }
    }
    const auto quarter = [](const float(&v)[4]) { return (v[0] + v[2]) + (v[1] + v[3]); };
    float e_sum = quarter(sum), e_weighted = quarter(weighted), e_logs = quarter(logs);
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
      dot += __shfl_xor_sync(~0u, dot, half);
      square += __shfl_xor_sync(~0u, square, half);
      if (half > 4) continue;
      e_sum += __shfl_xor_sync(~0u, e_sum, half);
      e_weighted += __shfl_xor_sync(~0u, e_weighted, half);
      e_logs += __shfl_xor_sync(~0u, e_logs, half);
    }
    const float next = max_(exp_(max_(min_(dot + divide(e_weighted, e_sum), 10.0f), -10.0f)), 1e-6f);
    if (t >= 0 && block == 0 && thread == kThreads - 32) {
      s.kept[0][t & 31] = next, s.kept[1][t & 31] = e_sum, s.kept[2][t & 31] = e_logs,
                    s.kept[3][t & 31] = square;
    }
    return next;
  };
  // Up to 32 steps to the results, the last of them t.
  const auto write_kept = [&](int t) {
    if (block != 0 || warp != kWarps - 1) return;
    __syncwarp();
    if (lane <= (t & 31)) {
      float* out = a.b9 + i64(group) * a.b9_s1 + (t & ~31) + lane;
      out[0] = s.kept[0][lane];
      out[a.b9_s0] = __fsqrt_rn(s.kept[3][lane]);
      out[2 * i64(a.b9_s0)] = log_(s.kept[1][lane]) - divide(s.kept[2][lane], s.kept[1][lane]);
    }
    __syncwarp();
  };
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");

#pragma unroll 1
  for (int t = 0; t < a.p1; ++t) {
    const int now = t & 1, next = 1 - now;
    const float* h = s.h[now];
#if HALF_WEIGHTS
    const auto column = [&](int c) { return h[lane + 32 * c]; };
#else
    float held[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) held[c] = h[lane + 32 * c];
    const auto column = [&](int c) { return held[c]; };
#endif
    const int half = RESET_AFTER ? now : 0;
    // The head runs beside the rows: nothing of it branches.
    const Head head = head_begin(h);
    put(half, 1, row_sums<kHeldR>(wr, nullptr, column));
#if RESET_AFTER
    put(half, 2, row_sums<kHeldN>(wn, rest_n, column));
    put(half, 0, row_sums<kHeldZ>(wz, rest_z, column));
    __syncthreads();
    const float judged = head_end(head, t - 1, column_sums(column, head_weight));
    loss = t > 0 ? judged : loss;
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      const float r = sigmoid_(input_sum(1, o) + get(half, 1, o)),
                  z = sigmoid_(input_sum(0, o) + get(half, 0, o));
      const float c = tanh_(fma_(r, get(half, 2, o) + after[o], input_sum(2, o)));
      own[o] = fma_(z, own[o] - c, c);
      send(o, own[o], kStateAt + u32(next) * kVectorBytes, u32(next));
    }
#else
    __syncthreads();
    const float judged = head_end(head, t - 1, column_sums(column, head_weight));
    loss = t > 0 ? judged : loss;
#pragma unroll
    for (int o = 0; o < kOwn; ++o) send(o, sigmoid_(input_sum(1, o) + get(half, 1, o)) * own[o], kResetAt, 2);
    put(half, 0, row_sums<kHeldZ>(wz, rest_z, column));
    __syncthreads();
    float z[kOwn];
#pragma unroll
    for (int o = 0; o < kOwn; ++o) z[o] = sigmoid_(input_sum(0, o) + get(half, 0, o));
    wait(bars + 16, t & 1);
#if HALF_WEIGHTS
    const auto reset = [&](int c) { return s.rh[lane + 32 * c]; };
#else
    float reset_held[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) reset_held[c] = s.rh[lane + 32 * c];
    const auto reset = [&](int c) { return reset_held[c]; };
#endif
    put(half, 2, row_sums<kHeldN>(wn, rest_n, reset));
    __syncthreads();
    if (thread == 0) expect(bars + 16, kVectorBytes);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      own[o] = fma_(z[o], tanh_(input_sum(2, o) + get(half, 2, o)) - own[o], own[o]);
      send(o, own[o], kStateAt + u32(next) * kVectorBytes, u32(next));
    }
#endif
    if (t > 0 && (t & 31) == 0) write_kept(t - 1);
    wait(bars + 8 * next, u32(t >> 1) & 1);
    if (thread == 0) expect(bars + 8 * next, kVectorBytes);
  }
  const float* h = s.h[a.p1 & 1];
  if (block == 0 && warp == kWarps - 1) {
    const auto column = [&](int c) { return h[lane + 32 * c]; };
    head_end(head_begin(h), a.p1 - 1, column_sums(column, head_weight));
    write_kept(a.p1 - 1);
  }
  if (block == 0)
    for (int k = thread; k < HIDDEN; k += kThreads) a.b8[i64(group) * a.b8_s0 + k] = h[k];
}
