// All steps of a rollout by one cluster of 16 blocks. Block b holds a sixteenth of the rows of U_z, U_r and
// U_h in registers and shared memory for the whole launch. Row warps multiply: r first, then z while the gate
// warps compute r and r h is under way, then the candidate. Gate warps read the loss off h meanwhile, each
// for itself, compute the gates and send r h and h to all blocks.
//
// Set before: HIDDEN, STATES, RESET_AFTER, FAST, BOUNDED, TENSOR (bf16 weights on tensor cores), ROW_WARPS, GATE_WARPS, SHARED_R,
// SHARED_Z, SHARED_N (16-byte pieces of a lane that stand in shared memory), ROW_REGISTERS, GATE_REGISTERS
// (0: no change), SHARED_BYTES. A sequence (forecast/gru) has no loss and 0 STATES.
#define FN __device__ __forceinline__
constexpr int kBlocks = 16, kRows = HIDDEN / kBlocks, kRowWarps = ROW_WARPS, kGateWarps = GATE_WARPS;
constexpr int kThreads = 32 * (kRowWarps + kGateWarps);
constexpr int kOwn = kRows > 32 ? kRows / 32 : 1;            // rows of a gate lane
constexpr int kTargetsAtOnce = kRows < 32 ? 32 / kRows : 1;  // blocks that one store of a warp reaches
constexpr int kSends = kBlocks / kGateWarps / kTargetsAtOnce > 0 ? kBlocks / kGateWarps / kTargetsAtOnce : 1;
static_assert(kBlocks % (kGateWarps * kTargetsAtOnce) == 0, "every block is one warp's target");

// Where the sums of r are there before the head's lanes are added, they are read meanwhile. Where the head takes longer than the
// rows of r, those of z wait for it: they would fill the units that add its lanes.
constexpr bool kSumsFirst = HIDDEN <= 256 && !RESET_AFTER,
               kHoldZ = !FAST && !RESET_AFTER && HIDDEN == 512 && STATES > 0;

// In exact numerics a sum is 32 chains, chain j of the columns j, j + 32 …, and a tree over them
// (kernels.hpp). Row lane j has chain j, so the columns j + 128 p + {0, 32, 64, 96} stand side by side in
// shared memory: it reads them at once. A block owns rows whose places follow each other, so that it sends
// runs of words.
FN constexpr int row_at(int place) {
  return TENSOR ? place : place / 128 * 128 + place % 4 * 32 + place / 4 % 32;
}
FN constexpr int place_of(int row) { return TENSOR ? row : row / 128 * 128 + row % 32 * 4 + row / 32 % 4; }

struct __align__(16) Piece {
  u32 word[4];
};
// A vector of all rows. f32 by places; for tensor cores h = high + low, two bf16 in a word: rows 64 b + j and
// 64 b + j + 32.
struct Vector {
#if TENSOR
  u32 high[HIDDEN / 2], between[16], low[HIDDEN / 2];  // high and low of one word lie in different banks
#else
  float value[HIDDEN];
#endif
};
constexpr int kPartialStride = 12;            // eight partial sums of a row, f32
constexpr int kSharedLines = TENSOR ? 2 : 1;  // pieces of a lane that SHARED_R counts as one
constexpr u32 kVectorBytes = HIDDEN * 4;      // that arrive
struct Shared {
  Vector h[RESET_AFTER ? 2 : 3];  // two buffers of h, then r h
  unsigned long long arrived[3];  // bytes of h (two buffers) and r h
  __align__(16) float sums[1 + RESET_AFTER][3][TENSOR ? 4 * kRows : kRows * 12];
  float pre[3][kRows];
  float kept[4][32];              // of 32 steps: loss; sums of e, of e times logit, of h squared
  float2 quarter[2][kGateWarps];  // of the head's products and of h squared
  Piece weights[(SHARED_R + SHARED_Z + SHARED_N) * kSharedLines * 32 * kRowWarps + 1];
};
static_assert(sizeof(Shared) <= SHARED_BYTES, "the host allocates less");
constexpr u32 kResetAt = 2 * sizeof(Vector),
              kArrivedAt = (RESET_AFTER ? 2 : 3) * sizeof(Vector);  // in Shared
