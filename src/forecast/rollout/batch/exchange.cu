// common/blocks.cu by pointers.
using Barrier = unsigned long long;
FN u32 of_block(const void* p, u32 block) { return of_block(address(p), block); }
FN void begin(Barrier* barrier, u32 count) { begin(address(barrier), count); }
FN void expect(Barrier* barrier, u32 bytes) { expect(address(barrier), bytes); }
FN void wait(Barrier* barrier, u32 phase) { wait(address(barrier), phase); }
FN void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}
// Of the same barrier in all blocks. Reads before it are done, nothing was written: no fence.
FN void arrive_everywhere(Barrier* barrier, int lane) {
  if (lane < kBlocks)
    asm volatile(
        "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(of_block(barrier, u32(lane)))
        : "memory");
}
// Shared memory that lanes wrote, for wgmma and for copies.
FN void written_for_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Barriers of warps of the block, by number.
enum Meeting { kAll, kLosses, kGatesReady, kStateReady, kOwnGroup };  // kOwnGroup + role
FN void meet(int which, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(which), "r"(threads) : "memory");
}
FN void pass(int which, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(which), "r"(threads) : "memory");
}

// From shared memory to the place alike of another block.
FN void copy(const void* from, u32 bytes, Barrier* arrived, u32 peer) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          of_block(from, peer)),
      "r"(address(from)), "r"(bytes), "r"(of_block(arrived, peer))
      : "memory");
}
// The block's slice of vector `which` to the other blocks, by one warp. Through the cache: once to memory, from there to
// all; lines of `scratch` belong to the block.
FN void send_slice(Shared& s, int which, u32 block, unsigned char* scratch, int lane) {
  Slice& own = s.vectors[which][block];
  if (!kThroughCache && lane > 0 && lane < kBlocks)
    copy(&own, kSliceBytes, &s.full[which][block], (block + u32(lane)) % kBlocks);
  if (lane > 0) return;
  if (kThroughCache) {
    unsigned char* line = scratch + which * kSliceBytes;
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(line),
                 "r"(address(&own)), "r"(kSliceBytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nfence.proxy.async;" ::: "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], "
        "%2, [%3], "
        "%4;" ::"r"(address(&own)),
        "l"(line), "r"(kSliceBytes), "r"(address(&s.full[which][block])),
        "h"((unsigned short)(((1 << kBlocks) - 1) & ~(1 << block)))
        : "memory");
  }
  arrive(&s.full[which][block]);
}
// The block's sums of the heads, from shared memory to shared memory.
FN void send_heads(Shared& s, u32 block, int lane) {
  if (lane > 0 && lane < kBlocks)
    copy(&s.heads[block], kHeadBytes, &s.heads_full, (block + u32(lane)) % kBlocks);
  if (lane == 0) arrive(&s.heads_full);
}
