// Between the blocks of a cluster: asynchronous stores that count their bytes on a barrier of the receiver;
// nothing waits for the whole cluster once the steps run. Between the warps of a block: named barriers, at
// which those who multiply arrive and those who compute the gates wait.
FN u32 address(const void* p) { return u32(__cvta_generic_to_shared(p)); }
FN u32 of_block(u32 local, u32 block) {
  u32 a;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(local), "r"(block));
  return a;
}
FN u32 own_block() {
  u32 block;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  return block;
}
FN void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
FN void wait(u32 barrier, u32 phase) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra "
      "AGAIN_%=;\n}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
FN void store_async(u32 to, u32 word, u32 barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
               "r"(word), "r"(barrier)
               : "memory");
}
FN void hand_over(int gate) { asm volatile("bar.arrive %0, %1;" ::"r"(gate + 1), "n"(kThreads) : "memory"); }
FN void take_over(int gate) { asm volatile("bar.sync %0, %1;" ::"r"(gate + 1), "n"(kThreads) : "memory"); }
FN void hold_rows() { asm volatile("bar.sync 5, %0;" ::"n"(kThreads) : "memory"); }
FN void release_rows() { asm volatile("bar.arrive 5, %0;" ::"n"(kThreads) : "memory"); }
FN void gate_warps_meet() { asm volatile("bar.sync 4, %0;" ::"n"(32 * kGateWarps) : "memory"); }
