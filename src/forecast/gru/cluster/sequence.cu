// A gate warp of a sequence: z, r and the candidate of all rows of the block (the gate warps compute alike), to some of the blocks
// each. The first keeps the states, the second the gates.
struct SequenceWarp : Owner {
  float own[kOwn], in[3][kOwn], after[3][kOwn];
  int column[kOwn], lane, warp;
  bool keeps_states, keeps_gates;

  FN i64 line(const Arguments& a, int sequence, int t) const { return i64(t) * a.p1 + sequence; }
  FN void load(const Arguments& a, Shared& s, int sequence, u32 own_block) {
    lane = int(threadIdx.x) & 31, warp = (int(threadIdx.x) >> 5) - kRowWarps;
    keeps_states = warp == 0 && lane < kRows, keeps_gates = warp == 1 && lane < kRows;
    take_rows(s, warp, lane, own_block);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      column[o] = row_at(int(block) * kRows + row[o]);
      own[o] = a.b2[sequence * i64(a.b2_s0) + column[o]];
#if RESET_AFTER
#pragma unroll
      for (int g = 0; g < 3; ++g) after[g][o] = __ldg(a.b5 + g * HIDDEN + column[o]);
#endif
    }
    read_inputs(in, a, sequence, 0);
  }
  FN void read_inputs(float (&to)[3][kOwn], const Arguments& a, int sequence, int t) const {
    const float* from = a.b1 + line(a, sequence, t) * a.b1_s0;
#pragma unroll
    for (int g = 0; g < 3; ++g)
#pragma unroll
      for (int o = 0; o < kOwn; ++o) to[g][o] = __ldg(from + g * HIDDEN + column[o]);
  }
  FN void keep_gate(const Arguments& a, int sequence, int t, int gate, const float (&v)[kOwn]) const {
    if (keeps_gates)
#pragma unroll
      for (int o = 0; o < kOwn; ++o) a.b3[line(a, sequence, t) * a.b3_s0 + gate * HIDDEN + column[o]] = v[o];
  }
  FN void keep_extra(const Arguments& a, int sequence, int t, const float (&v)[kOwn]) const {
    if (keeps_states)
#pragma unroll
      for (int o = 0; o < kOwn; ++o) a.b4[line(a, sequence, t) * a.b4_s0 + column[o]] = v[o];
  }
  FN void keep_state(const Arguments& a, int sequence, int t) const {
    if (keeps_states)
#pragma unroll
      for (int o = 0; o < kOwn; ++o) a.b2[line(a, sequence, t + 1) * a.b2_s0 + column[o]] = own[o];
  }
  FN void take_sums(float (&to)[kOwn], const Shared& s, int set, int gate) const {
    take_over(gate);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) to[o] = sum_of_row(s.sums[set][gate], row[o]);
  }
  FN void step_before(const Arguments& a, Shared& s, int sequence, int t) {
    float r[kOwn], reset[kOwn], z[kOwn], n[kOwn];
    take_sums(r, s, 0, 1);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) r[o] = sigmoid_(in[1][o] + r[o]), reset[o] = r[o] * own[o];
    send(reset, kResetAt, kArrivedAt + 16);
    keep_gate(a, sequence, t, 1, r);
    keep_extra(a, sequence, t, reset);
    take_sums(z, s, 0, 0);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) z[o] = sigmoid_(in[0][o] + z[o]);
    keep_gate(a, sequence, t, 0, z);
    take_sums(n, s, 0, 2);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) n[o] = tanh_(in[2][o] + n[o]), own[o] = fma_(z[o], n[o] - own[o], own[o]);
    if (t + 1 < a.p0) send_next(own, t);
    keep_gate(a, sequence, t, 2, n);
    keep_state(a, sequence, t);
  }
  FN void step_after(const Arguments& a, Shared& s, int sequence, int t) {
    float z[kOwn], r[kOwn], n[kOwn], inner[kOwn];
    take_sums(r, s, t & 1, 1);  // in the order in which the row warps have them
    take_sums(inner, s, t & 1, 2);
    take_sums(z, s, t & 1, 0);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      r[o] = sigmoid_(in[1][o] + (r[o] + after[1][o])), z[o] = sigmoid_(in[0][o] + (z[o] + after[0][o]));
      inner[o] = inner[o] + after[2][o];
      n[o] = tanh_(fma_(r[o], inner[o], in[2][o]));
      own[o] = fma_(z[o], own[o] - n[o], n[o]);
    }
    if (t + 1 < a.p0) send_next(own, t);
    keep_gate(a, sequence, t, 0, z);
    keep_gate(a, sequence, t, 1, r);
    keep_gate(a, sequence, t, 2, n);
    keep_extra(a, sequence, t, inner);
    keep_state(a, sequence, t);
  }
  FN void steps(const Arguments& a, Shared& s, int sequence) {
    const u32 arrived = address(s.arrived);
#pragma unroll 1
    for (int t = 0; t < a.p0; ++t) {
      float next[3][kOwn];
      read_inputs(next, a, sequence, min(t + 1, a.p0 - 1));
      if (t > 0) wait(arrived + 8 * (u32(t) & 1), u32(t - 1) >> 1 & 1);
      if (RESET_AFTER)
        step_after(a, s, sequence, t);
      else
        step_before(a, s, sequence, t);
#pragma unroll
      for (int g = 0; g < 3; ++g)
#pragma unroll
        for (int o = 0; o < kOwn; ++o) in[g][o] = next[g][o];
    }
  }
};

extern "C" __global__ void __cluster_dims__(16, 1, 1) __launch_bounds__(kThreads, 1)
    gru_cluster(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(128) unsigned char raw[];
  Shared& s = *reinterpret_cast<Shared*>(raw);
  const u32 block = own_block();
  const int sequence = a.offset_x + int(blockIdx.x) / kBlocks;
  begin_cluster(s);
  if (int(threadIdx.x) < 32 * kRowWarps) {
    REGISTERS("inc", ROW_REGISTERS);
    RowWarp rows;
    rows.load(a, s, 0, block);
    cluster_ready();
    rows.steps(s, a.p0);
  } else {
    REGISTERS("dec", GATE_REGISTERS);
    SequenceWarp gates;
    gates.load(a, s, sequence, block);
    for (int k = int(threadIdx.x) - 32 * kRowWarps; k < HIDDEN; k += 32 * kGateWarps)
      s.h[0].value[k] = a.b2[sequence * i64(a.b2_s0) + row_at(k)];
    cluster_ready();
    gates.steps(a, s, sequence);
  }
}
