// How the blocks of a cluster begin; registers pass from gate warps to row warps.
FN void begin_cluster(Shared& s) {
  const u32 arrived = address(s.arrived);
  if (threadIdx.x == 0) {
    for (int k = 0; k < 3; ++k) begin(arrived + 8 * k, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int k = 0; k < 3; ++k) expect(arrived + 8 * k, kVectorBytes);
  }
  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
FN void cluster_ready() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  __syncthreads();
}
#if ROW_REGISTERS
#define REGISTERS(more, count) asm volatile("setmaxnreg." more ".sync.aligned.u32 %0;" ::"n"(count))
#else
#define REGISTERS(more, count)
#endif
