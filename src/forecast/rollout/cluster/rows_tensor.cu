// A row warp on tensor cores: half of the block's rows by a quarter of the columns, weights in bf16, sums in
// f32. Column 0 of the right-hand factor is the high part of h, column 1 the low one, the others are 0.
constexpr int kColumnSteps = HIDDEN / 64, kTiles = 2;  // of 16 columns, of 16 rows

FN void multiply_tile(float (&sum)[4], const Piece& w, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(w.word[0]), "r"(w.word[1]), "r"(w.word[2]), "r"(w.word[3]), "r"(b0), "r"(b1));
}
// Lanes without use keep what they have.
FN void four_words_if(uint4& v, u32 at, bool used) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\n@p ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
      : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
      : "r"(at), "r"(u32(used))
      : "memory");
}
FN uint4 four_words(u32 at) {
  uint4 v;
  asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(at)
               : "memory");
  return v;
}
// Whether the tiles of column step k stand in shared memory, and how many of those before it do.
FN constexpr int shared_before(int k, int count) { return k * count / kColumnSteps; }
FN constexpr bool is_shared(int k, int count) {
  return shared_before(k + 1, count) > shared_before(k, count);
}

template <int kShared>
struct GateRows {
  static constexpr int kHeld = kColumnSteps - kShared;
  Piece held[kHeld > 0 ? kHeld* kTiles : 1];
  u32 rest;

  FN void load(const Piece* from, Piece* place) {
    rest = address(place);
#pragma unroll
    for (int k = 0; k < kColumnSteps; ++k)
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const int before = shared_before(k, kShared);
        const Piece* line = from + (k * kTiles + tile) * 32;
        if (is_shared(k, kShared))
          asm volatile(
              "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(rest + u32(before * kTiles + tile) * 512),
              "l"(line)
              : "memory");
        else
          asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                       : "=r"(held[((k - before) * kTiles + tile) % (kHeld * kTiles)].word[0]),
                         "=r"(held[((k - before) * kTiles + tile) % (kHeld * kTiles)].word[1]),
                         "=r"(held[((k - before) * kTiles + tile) % (kHeld * kTiles)].word[2]),
                         "=r"(held[((k - before) * kTiles + tile) % (kHeld * kTiles)].word[3])
                       : "l"(line));
      }
  }
  FN Piece shared_piece(int at) const {
    const uint4 v = four_words(rest + u32(at) * 512);
    return {{v.x, v.y, v.z, v.w}};
  }
  // `words`: of the vector, of this lane; lanes of the unused columns read none.
  FN void times(float (&sum)[kTiles][4], u32 words, bool used) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int k = 0; k < 4; ++k) sum[tile][k] = 0.0f;
    uint4 b[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    Piece next[kTiles];
    four_words_if(b[0], words, used);
    if (kShared > 0)
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) next[tile] = shared_piece(tile);
#pragma unroll
    for (int k = 0; k < kColumnSteps; ++k) {
      const int before = shared_before(k, kShared);
      if (k % 2 == 0 && k + 2 < kColumnSteps)
        four_words_if(b[(k / 2 + 1) % 2], words + u32(k / 2 + 1) * 64, used);
      const uint4 pair = b[k / 2 % 2];
      const u32 b0 = k % 2 == 0 ? pair.x : pair.z, b1 = k % 2 == 0 ? pair.y : pair.w;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (is_shared(k, kShared)) {
          multiply_tile(sum[tile], next[tile], b0, b1);
          if (before + 1 < kShared) next[tile] = shared_piece((before + 1) * kTiles + tile);
        } else {
          multiply_tile(sum[tile], held[((k - before) * kTiles + tile) % (kHeld * kTiles)], b0, b1);
        }
      }
    }
  }
};

struct RowWarp {
  GateRows<SHARED_R> r;
  GateRows<SHARED_Z> z;
  GateRows<SHARED_N> n;
  int lane, half, quarter;

  // Weights: (member, block, warp, gate, column step, tile) lines of 32 pieces.
  FN void load(const Arguments& a, Shared& s, int member, u32 block) {
    constexpr int kLines = kColumnSteps * kTiles;
    const int warp = int(threadIdx.x) >> 5;
    lane = int(threadIdx.x) & 31, half = warp & 1, quarter = warp >> 1;
    const i64 first = (i64(member * kBlocks + int(block)) * kRowWarps + warp) * kLines * 32;
    const Piece *zr = reinterpret_cast<const Piece*>(a.b0) + 2 * first + lane,
                *candidate = reinterpret_cast<const Piece*>(a.b1) + first + lane;
    Piece* shared = s.weights + warp * (SHARED_R + SHARED_Z + SHARED_N) * kTiles * 32 + lane;
    r.load(zr + kLines * 32, shared);
    z.load(zr, shared + SHARED_R * kTiles * 32);
    n.load(candidate, shared + (SHARED_R + SHARED_Z) * kTiles * 32);
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
  template <class Rows>
  FN void product(const Rows& rows, Shared& s, const Vector& x, int step, int gate) const {
    float sum[kTiles][4];
    const int column = lane >> 2;
    rows.times(sum, address(column == 1 ? x.low : x.high) + 4 * (128 * quarter + 4 * (lane & 3)), column < 2);
    if ((lane & 3) == 0)
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        float* out =
            s.sums[RESET_AFTER ? step & 1 : 0][gate] + quarter * kRows + half * 32 + tile * 16 + column;
        out[0] = sum[tile][0] + sum[tile][1];
        out[8] = sum[tile][2] + sum[tile][3];
      }
    hand_over(gate);
  }
  FN void steps(Shared& s, int count) const {
    const u32 arrived = address(s.arrived);
#pragma unroll 1
    for (int t = 0; t < count; ++t) {
      const u32 now = u32(t) & 1;
      if (t > 0) wait(arrived + 8 * now, u32(t - 1) >> 1 & 1);
      product(r, s, s.h[now], t, 1);
      if (t > 0 && threadIdx.x == 0) expect(arrived + 8 * now, kVectorBytes);
      if (RESET_AFTER) product(n, s, s.h[now], t, 2);
      product(z, s, s.h[now], t, 0);
      if (RESET_AFTER) continue;
      wait(arrived + 16, u32(t) & 1);
      product(n, s, s.h[2], t, 2);
      if (threadIdx.x == 0) expect(arrived + 16, kVectorBytes);
    }
  }
};
FN float sum_of_row(const float* sums, int row) {
  return (sums[row] + sums[row + kRows]) + (sums[row + 2 * kRows] + sums[row + 3 * kRows]);
}
