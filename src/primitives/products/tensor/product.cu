// c = a b in f64 by tensor cores. An instruction adds four products to each of 16 x 8 sums, one by one in the order of k and each by an
// fma, so the bits are those of the other forms. A block has TILE x TILE elements of c, a warp TILE / 2 x 32 of them.
//
// Set before: TILE (64 or 128), BATCH (0: matrices, 1: batches of them), ROWS (rows of a point of the portable kernel).
#define FN __device__ __forceinline__
constexpr int kTile = TILE, kDepth = 16, kStages = 3, kThreads = 2 * TILE, kWarpsAcross = TILE / 32;
constexpr int kLeftPitch = kDepth + 4, kRightPitch = kTile + 4;  // lanes of a fragment meet different banks
constexpr int kLeft = kTile * kLeftPitch, kStage = kLeft + kDepth * kRightPitch;
constexpr int kDown = TILE / 32, kAcross = 4,
              kStep = 4;  // a warp has so many times 16 x 8 sums; terms of an instruction

FN u32 address(const void* shared) { return u32(__cvta_generic_to_shared(shared)); }
template <int Elements>
FN void copy(double* to, const double* from) {
  if constexpr (Elements == 2)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(to)), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(address(to)), "l"(from) : "memory");
}
FN void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
FN void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
  __syncthreads();
}

/// Of a warp for kStep terms of its sums.
struct Factors {
  double left[kDown][2], right[kAcross];

  FN void load(const double* rows, const double* columns) {
#pragma unroll
    for (int j = 0; j < kAcross; ++j) right[j] = columns[j * 8];
#pragma unroll
    for (int i = 0; i < kDown; ++i)
#pragma unroll
      for (int n = 0; n < 2; ++n) left[i][n] = rows[(i * 16 + n * 8) * kLeftPitch];
  }
  FN void multiply(double (&sum)[kDown][kAcross][4]) const {
#pragma unroll
    for (int i = 0; i < kDown; ++i)
#pragma unroll
      for (int j = 0; j < kAcross; ++j) {
        double(&s)[4] = sum[i][j];
        asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, "
            "%3};"
            : "+d"(s[0]), "+d"(s[1]), "+d"(s[2]), "+d"(s[3])
            : "d"(left[i][0]), "d"(left[i][1]), "d"(right[j]));
      }
  }
};

struct Matrices {
  const double *a, *b;
  i64 a_pitch, b_pitch;
  int rows, columns, depth, row0, column0;
};

/// Copies tiles of a and b into shared memory, Elements at once along a row. Rows and columns beyond the edge repeat it and are never
/// stored.
template <int Elements>
struct Fetch {
  static constexpr int kRuns = kTile * kDepth / Elements / kThreads;  // of a thread, in each tile
  static constexpr int kAlong = kDepth / Elements, kDown = kThreads / kAlong, kWide = kTile / Elements,
                       kDeep = kThreads / kWide;
  const double *left[kRuns], *right;
  i64 right_pitch;
  int rest, k, to_left, to_right;

  FN explicit Fetch(const Matrices& m) : right_pitch(m.b_pitch), rest(m.depth) {
    const int t = threadIdx.x, row = t / kAlong, column = t % kWide * Elements;
    k = t % kAlong * Elements;
    to_left = row * kLeftPitch + k;
    to_right = kLeft + t / kWide * kRightPitch + column;
#pragma unroll
    for (int p = 0; p < kRuns; ++p) left[p] = m.a + min(m.row0 + row + p * kDown, m.rows - 1) * m.a_pitch + k;
    right = m.b + t / kWide * right_pitch + min(m.column0 + column, m.columns - Elements);
  }
  FN void next(double* stage) {
    if (rest >= kDepth) {
#pragma unroll
      for (int p = 0; p < kRuns; ++p) {
        copy<Elements>(stage + to_left + p * kDown * kLeftPitch, left[p]);
        copy<Elements>(stage + to_right + p * kDeep * kRightPitch, right + p * kDeep * right_pitch);
        left[p] += kDepth;
      }
      right += kDepth * right_pitch;
    } else if (rest > 0) {
      last(stage);
    }
    rest -= kDepth;
    commit();
  }
  /// Products beyond the last are -0, which leaves any sum as it is.
  FN void last(double* stage) const {
    const int deep = threadIdx.x / kWide;
#pragma unroll 1
    for (int p = 0; p < kRuns; ++p) {
      const double* line = right + p * kDeep * right_pitch;
      for (int n = 0; n < Elements; ++n) {
        double a = -0.0;
#pragma unroll
        for (int q = 0; q < kRuns; ++q)
          if (q == p && k + n < rest) a = left[q][n];
        stage[to_left + p * kDown * kLeftPitch + n] = a;
        stage[to_right + p * kDeep * kRightPitch + n] = deep + p * kDeep < rest ? line[n] : 0.0;
      }
    }
  }
};

template <int Elements>
FN void product(const Matrices& m, double* c, i64 c_pitch) {
  extern __shared__ __align__(16) double shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
  const int row = warp / kWarpsAcross * (kTile / 2), column = warp % kWarpsAcross * 32;
  double sum[kDown][kAcross][4] = {};
  Fetch<Elements> fetch(m);
#pragma unroll
  for (int s = 0; s < kStages; ++s) fetch.next(shared + s * kStage);
  wait<kStages - 1>();
  const int rows = (row + group) * kLeftPitch + quad, columns = kLeft + quad * kRightPitch + column + group;
  Factors now, then;
  now.load(shared + rows, shared + columns);
  int at = 0;
  for (int k0 = 0; k0 < m.depth; k0 += kDepth) {
    double* stage = shared + at * kStage;
    at = at + 1 == kStages ? 0 : at + 1;
#pragma unroll
    for (int k = kStep; k <= kDepth; k += kStep) {
      if (k < kDepth) {
        then.load(stage + rows + k, stage + columns + k * kRightPitch);
      } else {
        wait<kStages - 2>();
        then.load(shared + at * kStage + rows, shared + at * kStage + columns);
        fetch.next(stage);
      }
      now.multiply(sum);
      now = then;
    }
  }
#pragma unroll
  for (int i = 0; i < kDown; ++i)
#pragma unroll
    for (int j = 0; j < kAcross; ++j)
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int y = m.row0 + row + i * 16 + n * 8 + group, x = m.column0 + column + j * 8 + quad * 2;
        if (y >= m.rows || x >= m.columns) continue;
        double* to = c + y * c_pitch + x;
        if constexpr (Elements == 2) {
          *reinterpret_cast<double2*>(to) = make_double2(sum[i][j][2 * n], sum[i][j][2 * n + 1]);
        } else {
          to[0] = sum[i][j][2 * n];
          if (x + 1 < m.columns) to[1] = sum[i][j][2 * n + 1];
        }
      }
}

extern "C" __global__ void __launch_bounds__(kThreads) tensor_product(const __grid_constant__ Arguments a) {
  const int row0 = int(a.offset_y + blockIdx.y * (kTile / ROWS)) * ROWS,
            column0 = int(a.offset_x + blockIdx.x * kTile);
#if BATCH
  const i64 batch = i64(a.offset_z) + blockIdx.z, c_pitch = a.b2_s1;
  const Matrices m{a.b0 + batch * a.b0_s0, a.b1 + batch * a.b1_s0, a.b0_s1, a.b1_s1, int(a.b0_n1),
                   int(a.b1_n2),           int(a.b0_n2),           row0,    column0};
  double* c = a.b2 + batch * a.b2_s0;
#else
  const i64 c_pitch = a.b2_s0;
  const Matrices m{a.b0, a.b1, a.b0_s0, a.b1_s0, int(a.b0_n0), int(a.b1_n1), int(a.b0_n1), row0, column0};
  double* c = a.b2;
#endif
  const bool pairs =
      (i64(m.a) | i64(m.b) | i64(c) | (m.a_pitch | m.b_pitch | c_pitch | m.columns | m.depth) * 8) % 16 == 0;
  if (pairs)
    product<2>(m, c, c_pitch);
  else
    product<1>(m, c, c_pitch);
}
