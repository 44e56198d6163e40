// Weights from U^T (3 D, D): a lane reads the columns lane + 128 piece + {0, 32, 64, 96} of a row.
constexpr int kWarpRows = 4, kPieces = HIDDEN / 128;

struct Lines {
  const Arguments& a;
  int first, lane;  // first: place of the warp's first row

  FN Lines(const Arguments& all, int, u32 block, int warp, int own_lane)
      : a(all), first(int(block) * kRows + warp * kWarpRows), lane(own_lane) {}
  FN Piece piece(int gate, int piece, int row) const {
    const float* from = a.b0 + i64(gate * HIDDEN + row_at(first + row)) * a.b0_s0 + 128 * piece + lane;
    Piece w;
#pragma unroll
    for (int k = 0; k < 4; ++k) w.word[k] = __float_as_uint(__ldg(from + 32 * k));
    return w;
  }
};
