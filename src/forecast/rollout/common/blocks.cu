// Between the blocks of a cluster: places in another block's shared memory, and barriers that count the bytes that
// arrive. Shared memory goes by its 32-bit addresses.
FN u32 address(const void* p) { return u32(__cvta_generic_to_shared(p)); }
FN u32 own_block() {
  u32 block;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  return block;
}
// The same place in another block.
FN u32 of_block(u32 local, u32 block) {
  u32 a;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(local), "r"(block));
  return a;
}
FN void begin(u32 barrier, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
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
