// Between the blocks of a cluster: asynchronous stores that count their bytes on a barrier of the receiver;
// nothing waits for the whole cluster once the steps run. Between the warps of a block: named barriers, at
// which those who multiply arrive and those who compute the gates wait.
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
