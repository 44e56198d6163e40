// W x + b without feature 0, of the block's rows.
FN void input_sums(const Arguments& a, Shared& s, int member, int entry, u32 block) {
  for (int t = int(threadIdx.x) - 32 * kRowWarps; t < 3 * kRows; t += 32 * kGateWarps) {
    const int gate = t / kRows, in_member = row_at(int(block) * kRows + t % kRows),
              place = member * kBlocks + in_member / kRows, r = in_member % kRows;
    float sum = __ldg(a.b3 + (place * 4 + gate) * kRows + r);
    const float *w = a.b2 + i64(place) * a.b2_n1 * (3 * kRows) + gate * kRows + r,
                *x = a.b5 + i64(entry) * a.b5_s0;
    constexpr int kAhead = 32;  // loads under way
#pragma unroll 1
    for (int first = 1; first < a.b2_n1; first += kAhead) {
      float weight[kAhead], feature[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int at = min(first + i, a.b2_n1 - 1);
        weight[i] = __ldg(w + at * 3 * kRows), feature[i] = __ldg(x + at);
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) sum = first + i < a.b2_n1 ? fma_(weight[i], feature[i], sum) : sum;
    }
    s.pre[gate][t % kRows] = sum;
  }
}
FN void first_state(const Arguments& a, Shared& s, int member) {
  for (int k = int(threadIdx.x) - 32 * kRowWarps; k < HIDDEN / (1 + TENSOR); k += 32 * kGateWarps) {
    const float* h0 = a.b6 + i64(member) * a.b6_s0;
#if TENSOR
    const float x = __ldg(h0 + k / 32 * 64 + k % 32), y = __ldg(h0 + k / 32 * 64 + k % 32 + 32);
    const u32 high = GateWarp::bf16_pair(x, y);
    s.h[0].high[k] = high;
    s.h[0].low[k] = GateWarp::bf16_pair(x - bf16_low(high), y - bf16_high(high));
#else
    s.h[0].value[k] = __ldg(h0 + row_at(k));
#endif
  }
}
extern "C" __global__ void __cluster_dims__(16, 1, 1) __launch_bounds__(kThreads, 1)
    rollout_cluster(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(128) unsigned char raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw);
  const u32 block = own_block();
  const int group = a.offset_x + int(blockIdx.x) / kBlocks, member = group / a.p0, entry = group % a.p0;
  begin_cluster(s);
  if (int(threadIdx.x) < 32 * kRowWarps) {
    REGISTERS("inc", ROW_REGISTERS);
    RowWarp rows;
    rows.load(a, s, member, block);
    cluster_ready();
    rows.steps(s, a.p1);
  } else {
    REGISTERS("dec", GATE_REGISTERS);
    GateWarp gates;
    gates.load(a, s, member, entry, block);
    first_state(a, s, member);
    input_sums(a, s, member, entry, block);
    gate_warps_meet();
    gates.load_input_sums(s);
    cluster_ready();
    gates.steps(a, s, group, a.p1);
  }
}
