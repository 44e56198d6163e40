// The rows of a gate lane, and the blocks to which its warp sends their values.
struct Owner {
  int row[kOwn];  // in the block
  u32 target[kSends], block;

  FN void take_rows(Shared& s, int warp, int lane, u32 own_block) {
    block = own_block;
#pragma unroll
    for (int i = 0; i < kSends; ++i)
      target[i] = of_block(address(&s), u32(warp * (kBlocks / kGateWarps) + i * kTargetsAtOnce +
                                            (kRows < 32 ? lane / kRows : 0)));
#pragma unroll
    for (int o = 0; o < kOwn; ++o) row[o] = kRows < 32 ? lane % kRows : lane + 32 * o;
  }
  // The vector and its barrier are given by their places in Shared.
  FN void send(const float (&v)[kOwn], u32 vector, u32 barrier) const {
#if TENSOR
    const u32 high = bf16_pair(v[0], v[1]), low = bf16_pair(v[0] - bf16_low(high), v[1] - bf16_high(high));
    const u32 at = vector + 4 * (block * 32 + row[0]);
#pragma unroll
    for (int i = 0; i < kSends; ++i) store_async(target[i] + at, high, target[i] + barrier);
#pragma unroll
    for (int i = 0; i < kSends; ++i)
      store_async(target[i] + at + u32(offsetof_low()), low, target[i] + barrier);
#else
#pragma unroll
    for (int o = 0; o < kOwn; ++o)
#pragma unroll
      for (int i = 0; i < kSends; ++i)
        store_async(target[i] + vector + 4 * (block * kRows + row[o]), __float_as_uint(v[o]),
                    target[i] + barrier);
#endif
  }
  FN void send_next(const float (&own)[kOwn], int t) const {
    const u32 next = u32(t + 1) & 1;
    send(own, next * u32(sizeof(Vector)), kArrivedAt + 8 * next);
  }
#if TENSOR
  FN static u32 bf16_pair(float low, float high) {
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
  FN static u32 offsetof_low() { return 4 * (HIDDEN / 2 + 16); }
#endif
};
