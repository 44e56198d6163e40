struct Place {
  int member, first, place;  // first: starting point; place: block of the weights
  u32 block;
  unsigned char* scratch;
};
// Which vector holds h before step t, and how often it was full before.
FN int state_of(int t) { return RESET_AFTER ? t & 1 : 0; }
FN u32 state_phase(int t) { return u32(RESET_AFTER ? t >> 1 : t) & 1; }

// r as soon as h is there; r h to all blocks, or of reset_after r to the candidate's group.
FN void reset_steps(const Arguments& a, Shared& s, const Lane& at, const Place& p, const Held& held) {
  float sum[kSums];
#pragma unroll 1
  for (int t = 0; t < a.p1; ++t) {
    const int now = state_of(t);
    at.begin(s, sum);
    multiply(sum, held, s.weights + kReset * kTiles, s.vectors[now], s.full[now], state_phase(t));
    if (at.thread == 0) expect_slices(s, now, p.block);
    meet(kLosses, kThreads);
#if RESET_AFTER
#pragma unroll
    for (int q = 0; q < kEntries / 8; ++q) {
      const float4 x = at.with_loss(s, sum, q);
      s.r.of[q][at.thread] =
          make_float4(fast_sigmoid(x.x), fast_sigmoid(x.y), fast_sigmoid(x.z), fast_sigmoid(x.w));
    }
    pass(kGatesReady, kThreads);
#else
    u32 pairs[kSums / 2];
#pragma unroll
    for (int q = 0; q < kEntries / 8; ++q) {
      const float4 x = at.with_loss(s, sum, q), h = s.own.of[q][at.thread];
      pairs[2 * q] = f16_pair(fast_sigmoid(x.x) * h.x, fast_sigmoid(x.y) * h.y);
      pairs[2 * q + 1] = f16_pair(fast_sigmoid(x.z) * h.z, fast_sigmoid(x.w) * h.w);
    }
    at.put(s.vectors[1][p.block], pairs);
    written_for_copies();
    meet(kOwnGroup + kReset, kGroup);
    if (at.warp == 0) send_slice(s, 1, p.block, p.scratch, at.lane);
#endif
  }
}

// The heads of the step before, then z beside the exchange of r h.
FN void update_steps(const Arguments& a, Shared& s, const Lane& at, const Place& p, const Held& held) {
  float sum[kSums];
#pragma unroll 1
  for (int t = 0; t <= a.p1; ++t) {
    if (t > 0) {
      meet(kStateReady, 2 * kGroup);
      sum_heads(s, at, p.block);
      wait(&s.heads_full, u32(t - 1) & 1);
      if (kBlocks > 1 && at.thread == 0) expect(&s.heads_full, (kBlocks - 1) * kHeadBytes);
    }
    if (at.thread < kEntries)
      s.loss[at.thread] = loss_of(a, s, at.thread, p.member, p.first + at.thread, t, p.block);
    if (t == a.p1) break;
    meet(kLosses, kThreads);
    at.begin(s, sum);
    at.add_loss(s, sum);
    multiply(sum, held, s.weights + kUpdate * kTiles, s.vectors[state_of(t)], nullptr, 0);
    if (!RESET_AFTER) arrive_everywhere(&s.free, at.lane);
#pragma unroll
    for (int q = 0; q < kEntries / 8; ++q)
      s.z.of[q][at.thread] = make_float4(fast_sigmoid(sum[4 * q]), fast_sigmoid(sum[4 * q + 1]),
                                         fast_sigmoid(sum[4 * q + 2]), fast_sigmoid(sum[4 * q + 3]));
    pass(kGatesReady, RESET_AFTER ? kThreads : 2 * kGroup);
  }
}

// The candidate's activation of four sums; of reset_after they are U_h h + rb_h.
FN float4 candidate_of(const Shared& s, const Lane& at, const float (&sum)[kSums], int q) {
  float4 x = make_float4(sum[4 * q], sum[4 * q + 1], sum[4 * q + 2], sum[4 * q + 3]);
#if RESET_AFTER
  const float4 r = s.r.of[q][at.thread], pre = s.pre[kCandidate].of[q][at.thread],
               w = at.with_loss(s, pre.x, pre.y, pre.z, pre.w, q);
  x = make_float4(__fmaf_rn(r.x, x.x, w.x), __fmaf_rn(r.y, x.y, w.y), __fmaf_rn(r.z, x.z, w.z),
                  __fmaf_rn(r.w, x.w, w.w));
#endif
  return make_float4(fast_tanh(x.x), fast_tanh(x.y), fast_tanh(x.z), fast_tanh(x.w));
}
// The next h of a row: between h and the candidate n by z.
FN float between(float h, float n, float z) {
  return RESET_AFTER ? __fmaf_rn(z, h - n, n) : __fmaf_rn(z, n - h, h);
}

// The candidate and the next h.
FN void candidate_steps(const Arguments& a, Shared& s, const Lane& at, const Place& p, const Held& held) {
#if RESET_AFTER
  const float *bias = a.b3 + (p.place * 4 + 3) * 64 + at.row, bias0 = __ldg(bias), bias8 = __ldg(bias + 8);
#endif
  float sum[kSums];
#pragma unroll 1
  for (int t = 0; t < a.p1; ++t) {
    const int next = state_of(t + 1);
    meet(kLosses, kThreads);
#if RESET_AFTER
#pragma unroll
    for (int i = 0; i < kSums; ++i) sum[i] = i & 2 ? bias8 : bias0;
    multiply(sum, held, s.weights + kCandidate * kTiles, s.vectors[state_of(t)], nullptr, 0);
    meet(kGatesReady, kThreads);
#else
    at.begin(s, sum);
    at.add_loss(s, sum);
    multiply(sum, held, s.weights + kCandidate * kTiles, s.vectors[1], s.full[1], u32(t) & 1);
    if (at.thread == 0) expect_slices(s, 1, p.block);
    meet(kGatesReady, 2 * kGroup);
#endif
    u32 pairs[kSums / 2];
#pragma unroll
    for (int q = 0; q < kEntries / 8; ++q) {
      const float4 n = candidate_of(s, at, sum, q), z = s.z.of[q][at.thread];
      float4 h = s.own.of[q][at.thread];
      h = make_float4(between(h.x, n.x, z.x), between(h.y, n.y, z.y), between(h.z, n.z, z.z),
                      between(h.w, n.w, z.w));
      s.own.of[q][at.thread] = h;
      pairs[2 * q] = f16_pair(h.x, h.y), pairs[2 * q + 1] = f16_pair(h.z, h.w);
    }
    at.put(s.vectors[next][p.block], pairs);
    written_for_copies();
    meet(kOwnGroup + kCandidate, kGroup);
    pass(kStateReady, 2 * kGroup);
    if (at.warp > 0 || t + 1 == a.p1) continue;
    if (!RESET_AFTER) wait(&s.free, u32(t) & 1);
    send_slice(s, next, p.block, p.scratch, at.lane);
  }
}
