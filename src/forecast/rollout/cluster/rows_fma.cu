// A row warp in f32: four rows of each gate, all columns. Lane j adds chain j of every row; two levels of the
// tree by shuffles leave eight partial sums of a row, which go through shared memory. `Lines` reads the weights.
constexpr int kLines = kPieces * kWarpRows;

// A lane's weights of one gate: the last kShared lines in shared memory, the others in registers. Register
// row q holds row q ^ mask of the warp, so that the tree needs no selection.
template <int kShared>
struct GateRows {
  static constexpr int kHeld = kLines - kShared;
  Piece held[kHeld > 0 ? kHeld : 1];
  const Piece* rest;

  FN void load(const Lines& lines, int gate, Piece* place, int mask) {
    rest = place;
    const auto line = [&](int k) { return lines.piece(gate, k / kWarpRows, (k % kWarpRows) ^ mask); };
#pragma unroll
    for (int k = 0; k < kHeld; ++k) held[k] = line(k);
#pragma unroll
    for (int k = kHeld; k < kLines; ++k) place[(k - kHeld) * 32 * kRowWarps] = line(k);
  }
  FN float times(const float4 (&x)[kPieces]) const {
    float sum[kWarpRows] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < kLines; ++k) {
      const Piece w = k < kHeld ? held[k < kHeld ? k : 0] : rest[(k - kHeld) * 32 * kRowWarps];
      float& s = sum[k % kWarpRows];
      const float4 v = x[k / kWarpRows];
      s = fma_(__uint_as_float(w.word[0]), v.x, s);
      s = fma_(__uint_as_float(w.word[1]), v.y, s);
      s = fma_(__uint_as_float(w.word[2]), v.z, s);
      s = fma_(__uint_as_float(w.word[3]), v.w, s);
    }
    sum[0] += __shfl_xor_sync(~0u, sum[2], 16);
    sum[1] += __shfl_xor_sync(~0u, sum[3], 16);
    return sum[0] + __shfl_xor_sync(~0u, sum[1], 8);
  }
};

FN void read_vector(float4 (&x)[kPieces], const Vector& from, int lane) {
#pragma unroll
  for (int p = 0; p < kPieces; ++p) x[p] = reinterpret_cast<const float4*>(from.value)[32 * p + lane];
}

struct RowWarp {
  GateRows<SHARED_R> r;
  GateRows<SHARED_Z> z;
  GateRows<SHARED_N> n;
  int lane, place;  // place: of the lane's partial sum

  FN void load(const Arguments& a, Shared& s, int member, u32 block) {
    const int warp = int(threadIdx.x) >> 5, mask = int(threadIdx.x) >> 3 & 3;
    lane = int(threadIdx.x) & 31;
    place = (warp * kWarpRows + mask) * kPartialStride + (lane & 7);
    const Lines lines(a, member, block, warp, lane);
    Piece* shared = s.weights + threadIdx.x;
    r.load(lines, 1, shared, mask);
    z.load(lines, 0, shared + SHARED_R * 32 * kRowWarps, mask);
    n.load(lines, 2, shared + (SHARED_R + SHARED_Z) * 32 * kRowWarps, mask);
  }
  FN void steps(Shared& s, int count) const {
    const u32 arrived = address(s.arrived);
    const auto put = [&](int step, int gate, float v) {
      s.sums[RESET_AFTER ? step & 1 : 0][gate][place] = v;
      hand_over(gate);
    };
#pragma unroll 1
    for (int t = 0; t < count; ++t) {
      const u32 now = u32(t) & 1;
      if (t > 0) wait(arrived + 8 * now, u32(t - 1) >> 1 & 1);
      float4 x[kPieces];
      read_vector(x, s.h[now], lane);
      put(t, 1, r.times(x));
      if (t > 0 && threadIdx.x == 0) expect(arrived + 8 * now, kVectorBytes);
      if (RESET_AFTER) put(t, 2, n.times(x));
      if (kHoldZ) hold_rows();
      put(t, 0, z.times(x));
      if (RESET_AFTER) continue;
      wait(arrived + 16, u32(t) & 1);
      read_vector(x, s.h[2], lane);
      put(t, 2, n.times(x));
      if (threadIdx.x == 0) expect(arrived + 16, kVectorBytes);
    }
  }
};
FN float sum_of_row(const float* sums, int row) {
  const float4 *line = reinterpret_cast<const float4*>(sums + row * kPartialStride), v = line[0], u = line[1];
  return ((v.x + u.x) + (v.z + u.z)) + ((v.y + u.y) + (v.w + u.w));
}
