// h after the last step.
FN void last_state(const Arguments& a, const Shared& s, const Lane& at, const Place& p) {
#pragma unroll
  for (int q = 0; q < kEntries / 8; ++q) {
    const float4 h = s.own.of[q][at.thread];
    const int entry = p.first + 8 * q + at.pair;
    float* to = a.b8 + (i64(p.member) * a.p0 + entry) * a.b8_s0 + p.block * 64 + at.row;
    if (entry < a.p0) to[0] = h.x, to[8] = h.z;
    if (entry + 1 < a.p0) to[a.b8_s0] = h.y, to[a.b8_s0 + 8] = h.w;
  }
}

extern "C" __global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    rollout_batch(const __grid_constant__ Arguments a) {
  extern __shared__ unsigned char raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw + ((1024 - address(raw) % 1024) % 1024));
  // Every lane of a warp takes the same branch, which wgmma's compiler has to see.
  const int role = __shfl_sync(~0u, int(threadIdx.x) / kGroup, 0), thread = int(threadIdx.x) % kGroup,
            lane = thread % 32, warp = thread / 32;
  const int parts = (a.p0 + kEntries - 1) / kEntries, number = int(blockIdx.x) / kBlocks + a.offset_x;
  const u32 block = own_block();
  const Place p{number / parts, number % parts * kEntries, number / parts * kBlocks + int(block), block,
                reinterpret_cast<unsigned char*>(a.b7) + (i64(number) * kBlocks + block) * 2 * kSliceBytes};
  const int gate = role == kReset ? 1 : role == kUpdate ? 0 : 2, row = 16 * warp + lane / 4;
  const float* column = a.b2 + i64(p.place) * a.b2_n1 * 192 + gate * 64 + row;
  const Lane at{role, thread, warp, lane, row, 2 * (lane % 4), __ldg(column), __ldg(column + 8)};
  if (threadIdx.x == 0) begin_barriers(s, block);
  Held held;
  load_weights(a, s, at, p.place, held);
  input_sums(a, s, at, p.place, gate, p.first);
  first_state(a, s, at, p.member, block);
  cluster_ready(s);
  if (role == kReset) {
    reset_steps(a, s, at, p, held);
  } else if (role == kUpdate) {
    update_steps(a, s, at, p, held);
  } else {
    candidate_steps(a, s, at, p, held);
    last_state(a, s, at, p);
  }
  // Nothing is sent to a block that has ended.
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}
