// Weights as pack_cluster lays them out: (member, block, warp, gate, piece, row of the warp) lines of 32 pieces.
constexpr int kWarpRows = 4, kPieces = HIDDEN / 128;

struct Lines {
  const Piece *zr, *candidate;

  FN Lines(const Arguments& a, int member, u32 block, int warp, int lane) {
    const i64 first = (i64(member * kBlocks + int(block)) * kRowWarps + warp) * (kPieces * kWarpRows * 32);
    zr = reinterpret_cast<const Piece*>(a.b0) + 2 * first + lane;
    candidate = reinterpret_cast<const Piece*>(a.b1) + first + lane;
  }
  FN Piece piece(int gate, int piece, int row) const {
    const Piece* from =
        (gate == 2 ? candidate : zr + gate * (kPieces * kWarpRows * 32)) + (piece * kWarpRows + row) * 32;
    Piece w;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
                 : "l"(from));
    return w;
  }
};
