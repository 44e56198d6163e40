// All steps of up to ENTRIES starting points of a member by one cluster of HIDDEN / 64 blocks. Block b holds rows
// 64 b … of U_z, U_r and U_h in f16 for the whole launch, in registers and shared memory, a gate for each of three
// warp groups; they multiply h or r h of all starting points by wgmma, with sums in f32. h itself stays f32.
// Its copy in f16 goes to all blocks of the cluster, if large by way of the L2 cache.
//
// Set before: HIDDEN, STATES, RESET_AFTER, ENTRIES (a multiple of 8), HELD (of HIDDEN / 16 steps of a product
// those whose weights stand in registers), SHARED_BYTES.
#define FN __device__ __forceinline__
constexpr int kBlocks = HIDDEN / 64, kEntries = ENTRIES, kSums = kEntries / 2;  // sums of a lane
constexpr int kTiles = HIDDEN / 64 - HELD / 4;                                  // of weights in shared memory
constexpr int kGroup = 128, kThreads = 3 * kGroup;
enum Role { kReset, kUpdate, kCandidate };                          // of a warp group
constexpr int kWays = kEntries <= 16 ? 8 : kEntries <= 32 ? 4 : 2;  // lanes that read a starting point's h
constexpr bool kThroughCache = kEntries > 32 && kBlocks > 1;        // slower for small slices
constexpr int kParts = 5;  // of a head: h w, e w, e, h h, e logit; e = exp(logit)
static_assert(HELD % 4 == 0 && kEntries % 8 == 0 && kWays * kEntries <= kGroup, "");

// f16, a starting point after the other, 64 columns each, as wgmma reads them: 16-byte pieces of line n at their
// place exclusive or n mod 8.
struct __align__(1024) Slice {
  unsigned char bytes[kEntries * 128];
};
struct __align__(1024) Tile {
  u32 words[64 * 32];
};
// f32 of the block's 64 rows, where the lanes of a warp group have their sums.
struct Fragments {
  float4 of[kEntries / 8][kGroup];
};
struct Sums {
  float of[kParts][kEntries];
};
// A row that is the logit of `count` states, the sum of their weights.
struct StateRow {
  int row;
  float count, weight;
};
struct Shared {
  Tile weights[3 * kTiles + 1 - (kTiles > 0)];
  Slice vectors[2][kBlocks];  // h and r h; of reset_after h of even and odd steps
  Sums heads[kBlocks];
  Fragments pre[3], own, z;
#if RESET_AFTER
  Fragments r;
#endif
  float head[64];
  StateRow states[64];
  int state_rows;
  __align__(16) float loss[kEntries];  // read two at a time
  unsigned long long full[2][kBlocks], heads_full, free;
};
constexpr u32 kSliceBytes = sizeof(Slice), kHeadBytes = sizeof(Sums);
static_assert(sizeof(Shared) + 1024 <= SHARED_BYTES, "the host allocates less");
static_assert(kWays * sizeof(Sums) <= sizeof(Fragments), "parts of the heads stand where z was");
