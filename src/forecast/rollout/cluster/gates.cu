// A gate warp: the loss, then z, r and the candidate of all rows of the block (the gate warps compute alike),
// to four blocks each.
struct GateWarp : Owner {
  Head head;
  float own[kOwn], pre[3][kOwn], column0[3][kOwn], after[kOwn], loss;

  FN void load(const Arguments& a, Shared& s, int member, int entry, u32 own_block) {
    head.load(a);
    take_rows(s, head.warp, head.lane, own_block);
    loss = __ldg(a.b5 + i64(entry) * a.b5_s0);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      const int in_member = row_at(int(block) * kRows + row[o]), place = member * kBlocks + in_member / kRows,
                r = in_member % kRows;
      own[o] = __ldg(a.b6 + i64(member) * a.b6_s0 + in_member);
      after[o] = RESET_AFTER ? __ldg(a.b3 + (place * 4 + 3) * kRows + r) : 0.0f;
#pragma unroll
      for (int g = 0; g < 3; ++g)
        column0[g][o] = __ldg(a.b2 + i64(place) * a.b2_n1 * (3 * kRows) + g * kRows + r);
    }
  }
  FN void load_input_sums(const Shared& s) {
#pragma unroll
    for (int o = 0; o < kOwn; ++o)
#pragma unroll
      for (int g = 0; g < 3; ++g) pre[g][o] = s.pre[g][row[o]];
  }
  FN float input_sum(int gate, int o) const { return fma_(column0[gate][o], loss, pre[gate][o]); }
  FN void judge(const HeadSums& j, int t) { loss = t > 0 ? loss_of(j) : loss; }
  FN void step_before(const Arguments& a, Shared& s, HeadSums& j, int group, int t) {
    float r[kOwn], z[kOwn];
    take_over(1);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) r[o] = sum_of_row(s.sums[0][1], row[o]);
    if (kSumsFirst) head_sums(j, head, s, t, block == 0);
    if (kHoldZ) release_rows();
    judge(j, t);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) r[o] = sigmoid_(input_sum(1, o) + r[o]) * own[o];
    send(r, kResetAt, kArrivedAt + 16);
    take_over(0);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) z[o] = sigmoid_(input_sum(0, o) + sum_of_row(s.sums[0][0], row[o]));
    keep(a, s, j, group, t);
    take_over(2);
#pragma unroll
    for (int o = 0; o < kOwn; ++o)
      own[o] = fma_(z[o], tanh_(input_sum(2, o) + sum_of_row(s.sums[0][2], row[o])) - own[o], own[o]);
    send_next(own, t);
  }
  FN void step_after(const Arguments& a, Shared& s, const HeadSums& j, int group, int t) {
    float sum[3][kOwn];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const int gate = (k + 1) % 3;  // as the row warps have them
      take_over(gate);
#pragma unroll
      for (int o = 0; o < kOwn; ++o) sum[gate][o] = sum_of_row(s.sums[RESET_AFTER ? t & 1 : 0][gate], row[o]);
    }
    judge(j, t);
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      const float r = sigmoid_(input_sum(1, o) + sum[1][o]), z = sigmoid_(input_sum(0, o) + sum[0][o]);
      const float c = tanh_(fma_(r, sum[2][o] + after[o], input_sum(2, o)));
      own[o] = fma_(z, own[o] - c, c);
    }
    send_next(own, t);
    keep(a, s, j, group, t);
  }
  // The results of the step before, in the shadow of an exchange. All gate warps wait for the last, so two of them share
  // the work.
  FN void keep(const Arguments& a, Shared& s, const HeadSums& j, int group, int t) const {
    if (t == 0 || block != 0 || head.warp < kGateWarps - 2) return;
    const bool whole = (t & 31) == 0 || t == a.p1;
    if (head.warp == kGateWarps - 1) {
      record_loss(j, head, s, loss, t - 1);
      if (whole) write_losses(a, s, group, t - 1);
    } else {
      record_norm(j, head, s, t - 1);
      if (whole) write_norms(a, s, group, t - 1);
    }
  }
  FN void steps(const Arguments& a, Shared& s, int group, int count) {
    const u32 arrived = address(s.arrived);
    HeadSums j;
#pragma unroll 1
    for (int t = 0; t <= count; ++t) {
      const u32 now = u32(t) & 1;
      if (t > 0) wait(arrived + 8 * now, u32(t - 1) >> 1 & 1);
      lane_sums(j, head, s.h[now]);
      if (!kSumsFirst || t == count) head_sums(j, head, s, t, block == 0);
      if (t == count) break;
      if (RESET_AFTER)
        step_after(a, s, j, group, t);
      else
        step_before(a, s, j, group, t);
    }
    judge(j, count);
    keep(a, s, j, group, count);
    if (head.warp == 0 && head.lane < kRows)
#pragma unroll
      for (int o = 0; o < kOwn; ++o)
        a.b8[i64(group) * a.b8_s0 + row_at(int(block) * kRows + row[o])] = own[o];
  }
};
