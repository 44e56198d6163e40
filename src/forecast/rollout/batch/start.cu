FN void load_weights(const Arguments& a, Shared& s, const Lane& at, int place, Held& held) {
  constexpr int kWords = 64 * HIDDEN / 2;
  const u32* from = reinterpret_cast<const u32*>(at.role == kCandidate ? a.b1 : a.b0) +
                    (at.role == kCandidate ? i64(place) : 2 * i64(place) + (at.role == kReset)) * kWords;
  for (int i = at.thread; i < kTiles * 512; i += kGroup)
    reinterpret_cast<uint4*>(s.weights + at.role * kTiles)[i] =
        __ldg(reinterpret_cast<const uint4*>(from) + i);
  from += kTiles * 2048 + 4 * at.thread;
#pragma unroll
  for (int k = 0; k < HELD; ++k)
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(held.of[k][0]), "=r"(held.of[k][1]), "=r"(held.of[k][2]), "=r"(held.of[k][3])
                 : "l"(from + k * 512));
}

// W x + b without feature 0; features stand in `s.vectors` a while.
FN void input_sums(const Arguments& a, Shared& s, const Lane& at, int place, int gate, int first) {
  constexpr int kAtOnce = 32;
  float(*x)[kEntries] = reinterpret_cast<float(*)[kEntries]>(s.vectors[0]);
  const float* bias = a.b3 + (place * 4 + gate) * 64 + at.row;
  float sum[kSums];
#pragma unroll
  for (int i = 0; i < kSums; ++i) sum[i] = __ldg(bias + (i & 2) * 4);
  for (int from = 0; from < a.b2_n1; from += kAtOnce) {
    __syncthreads();
    for (int i = int(threadIdx.x); i < kAtOnce * kEntries; i += kThreads) {
      const int feature = from + i % kAtOnce, entry = min(first + i / kAtOnce, a.p0 - 1);
      x[i % kAtOnce][i / kAtOnce] =
          feature > 0 && feature < a.b2_n1 ? a.b5[i64(entry) * a.b5_s0 + feature] : 0.0f;
    }
    __syncthreads();
    const int count = min(kAtOnce, a.b2_n1 - from);
    const float* w = a.b2 + (i64(place) * a.b2_n1 + from) * 192 + gate * 64 + at.row;
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
      const float w0 = __ldg(w + i * 192), w8 = __ldg(w + i * 192 + 8);
#pragma unroll
      for (int q = 0; q < kEntries / 8; ++q) {
        const float2 v = *reinterpret_cast<const float2*>(&x[i][8 * q + at.pair]);
        sum[4 * q] = __fmaf_rn(w0, v.x, sum[4 * q]), sum[4 * q + 1] = __fmaf_rn(w0, v.y, sum[4 * q + 1]);
        sum[4 * q + 2] = __fmaf_rn(w8, v.x, sum[4 * q + 2]),
                    sum[4 * q + 3] = __fmaf_rn(w8, v.y, sum[4 * q + 3]);
      }
    }
  }
#pragma unroll
  for (int q = 0; q < kEntries / 8; ++q)
    s.pre[at.role].of[q][at.thread] = make_float4(sum[4 * q], sum[4 * q + 1], sum[4 * q + 2], sum[4 * q + 3]);
  __syncthreads();
}

// h of all blocks, and what the heads weigh the block's rows by.
FN void first_state(const Arguments& a, Shared& s, const Lane& at, int member, u32 block) {
  const float* h0 = a.b6 + i64(member) * a.b6_s0;
  for (int i = int(threadIdx.x); i < kBlocks * kEntries * 32; i += kThreads) {
    const int b = i / (kEntries * 32), n = i / 32 % kEntries, k = i % 32 * 2;
    *reinterpret_cast<u32*>(s.vectors[0][b].bytes + n * 128 + ((k / 8) ^ (n & 7)) * 16 + k % 8 * 2) =
        f16_pair(h0[b * 64 + k], h0[b * 64 + k + 1]);
  }
  if (at.role == kCandidate) {
    const float v0 = h0[block * 64 + at.row], v8 = h0[block * 64 + at.row + 8];
    for (int q = 0; q < kEntries / 8; ++q) s.own.of[q][at.thread] = make_float4(v0, v0, v8, v8);
  }
  if (threadIdx.x < 64) s.head[threadIdx.x] = a.b4[block * 64 + threadIdx.x];
  if (threadIdx.x > 0) return;
  int rows = 0, last = -1;
  for (int i = 0; i < STATES; ++i) {
    const int row = int(i64(i) * HIDDEN / STATES) - int(block) * 64;
    if (row < 0 || row >= 64) continue;
    if (row != last) s.states[rows++] = {row, 0.0f, 0.0f};
    s.states[rows - 1].count += 1.0f, s.states[rows - 1].weight += a.b4[HIDDEN + i];
    last = row;
  }
  s.state_rows = rows;
}

FN void begin_barriers(Shared& s, u32 block) {
  for (int b = 0; b < kBlocks; ++b) begin(&s.full[0][b], 1), begin(&s.full[1][b], 1);
  begin(&s.heads_full, kBlocks > 1 ? 2 : 1);
  begin(&s.free, 4 * kBlocks);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  expect_slices(s, 1, block);
  if (kBlocks > 1) expect(&s.heads_full, (kBlocks - 1) * kHeadBytes);
}
// Of the first h, which each block made for itself; after that no block is behind.
FN void cluster_ready(Shared& s) {
  written_for_copies();
  __syncthreads();
  if (threadIdx.x == 0)
    for (int b = 0; b < kBlocks; ++b) arrive(&s.full[0][b]);
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
