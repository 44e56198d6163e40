FN u32 f16_pair(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// For wgmma: lines of 128 bytes, eight of them 1024 bytes apart from the next eight, pieces exchanged.
FN unsigned long long descriptor(u32 at) {
  return (1ull << 62) | (64ull << 32) | (1ull << 16) | ((at & 0x3ffffu) >> 4);
}

struct Held {
  u32 of[HELD][4];
};
// Adds the warp group's 64 rows times a vector of all starting points. `full`: barriers of the slices, or null where they are
// known to be there.
FN void multiply(float (&sum)[kSums], const Held& held, const Tile* tiles, const Slice* vector, Barrier* full,
                 u32 phase) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) asm volatile("" : "+f"(sum[i])::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    if (full) {
      wait(full + b, phase);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const unsigned long long columns = descriptor(address(vector + b) + 32 * k);
      if (b < kTiles)
        product_shared(sum, descriptor(address(tiles + b) + 32 * k), columns);
      else
        product_held(sum, held.of[b < kTiles ? 0 : 4 * (b - kTiles) + k], columns);
    }
  }
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < kSums; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}
FN void expect_slices(Shared& s, int which, u32 block) {
#pragma unroll
  for (int b = 0; b < kBlocks; ++b)
    if (b != int(block)) expect(&s.full[which][b], kSliceBytes);
}

// A lane of a warp group: its rows `row` and row + 8, its starting points 8 q + pair and the next one.
struct Lane {
  int role, thread, warp, lane, row, pair;
  float column0, column8;  // of W, feature 0

  // W x + b but for feature 0.
  FN void begin(const Shared& s, float (&sum)[kSums]) const {
#pragma unroll
    for (int q = 0; q < kEntries / 8; ++q) {
      const float4 pre = s.pre[role].of[q][thread];
      sum[4 * q] = pre.x, sum[4 * q + 1] = pre.y, sum[4 * q + 2] = pre.z, sum[4 * q + 3] = pre.w;
    }
  }
  FN float4 with_loss(const Shared& s, float x, float y, float z, float w, int q) const {
    const float2 loss = *reinterpret_cast<const float2*>(s.loss + 8 * q + pair);
    return make_float4(__fmaf_rn(column0, loss.x, x), __fmaf_rn(column0, loss.y, y),
                       __fmaf_rn(column8, loss.x, z), __fmaf_rn(column8, loss.y, w));
  }
  FN float4 with_loss(const Shared& s, const float (&sum)[kSums], int q) const {
    return with_loss(s, sum[4 * q], sum[4 * q + 1], sum[4 * q + 2], sum[4 * q + 3], q);
  }
  FN void add_loss(const Shared& s, float (&sum)[kSums]) const {
#pragma unroll
    for (int q = 0; q < kEntries / 8; ++q) {
      const float4 v = with_loss(s, sum, q);
      sum[4 * q] = v.x, sum[4 * q + 1] = v.y, sum[4 * q + 2] = v.z, sum[4 * q + 3] = v.w;
    }
  }
  // Pairs of f16 of neighbouring starting points into the block's slice.
  FN void put(Slice& slice, const u32 (&pairs)[kSums / 2]) const {
    const u32 at = address(&slice) +
                   u32((8 * (lane / 16) + lane % 8) * 128 + ((2 * warp + lane / 8 % 2) ^ (lane % 8)) * 16);
#pragma unroll
    for (int q = 0; q + 1 < kEntries / 8; q += 2)
      asm volatile(
          "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at + q * 1024),
          "r"(pairs[2 * q]), "r"(pairs[2 * q + 1]), "r"(pairs[2 * q + 2]), "r"(pairs[2 * q + 3])
          : "memory");
    if (kEntries / 8 % 2)
      asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(
                       at + (kEntries / 8 - 1) * 1024),
                   "r"(pairs[kSums / 2 - 2]), "r"(pairs[kSums / 2 - 1])
                   : "memory");
  }
};
