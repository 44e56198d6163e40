// The block's share of the heads' sums, to all blocks: kWays lanes for each starting point, then the lanes of the group.
FN void sum_heads(Shared& s, const Lane& at, u32 block) {
  Sums* parts = reinterpret_cast<Sums*>(&s.z);
  const int n = at.thread % kEntries, way = at.thread / kEntries;
  if (way < kWays) {
    const float* h = reinterpret_cast<const float*>(&s.own) + (n / 8 * kGroup + n % 8 / 2) * 4 + n % 2;
    float sum[kParts] = {};
    const auto value = [&](int row) { return h[(row / 16 * 32 + row % 8 * 4) * 4 + row / 8 % 2 * 2]; };
    for (int k = way; k < s.state_rows; k += kWays) {
      const StateRow of = s.states[k];
      const float v = value(of.row), e = fast_exp(v);
      sum[1] = __fmaf_rn(of.weight, e, sum[1]), sum[2] = __fmaf_rn(of.count, e, sum[2]);
      sum[4] = __fmaf_rn(of.count * e, v, sum[4]);
    }
#pragma unroll 8
    for (int k = 0; k < 64 / kWays; ++k) {
      const int row = way * (64 / kWays) + k;
      const float v = value(row);
      sum[0] = __fmaf_rn(s.head[row], v, sum[0]), sum[3] = __fmaf_rn(v, v, sum[3]);
    }
#pragma unroll
    for (int k = 0; k < kParts; ++k) parts[way].of[k][n] = sum[k];
  }
  meet(kOwnGroup + kUpdate, kGroup);
  for (int i = at.thread; i < kParts * kEntries; i += kGroup) {
    float sum = 0.0f;
#pragma unroll
    for (int way_of = 0; way_of < kWays; ++way_of) sum += parts[way_of].of[0][i];
    s.heads[block].of[0][i] = sum;
  }
  written_for_copies();
  meet(kOwnGroup + kUpdate, kGroup);
  if (at.warp == 0) send_heads(s, block, at.lane);
}

// The loss of starting point n after step t - 1 from the sums of all blocks, and what else is kept of the step.
FN float loss_of(const Arguments& a, const Shared& s, int n, int member, int entry, int t, u32 block) {
  if (t == 0) return a.b5[i64(min(entry, a.p0 - 1)) * a.b5_s0];
  float sum[kParts] = {};
#pragma unroll
  for (int b = 0; b < kBlocks; ++b)
#pragma unroll
    for (int k = 0; k < kParts; ++k) sum[k] += s.heads[b].of[k][n];
  const float activation = sum[0] + sum[1] * approximate_inverse(sum[2]);
  const float loss = fmaxf(fast_exp(fminf(fmaxf(activation, -10.0f), 10.0f)), 1e-6f);
  if (n % kBlocks == int(block) && entry < a.p0) {
    float* out = a.b9 + (i64(member) * a.p0 + entry) * a.b9_s1 + t - 1;
    out[0] = loss;
    out[a.b9_s0] = __fsqrt_rn(sum[3]);
    out[2 * i64(a.b9_s0)] = __logf(sum[2]) - sum[4] * approximate_inverse(sum[2]);
  }
  return loss;
}
