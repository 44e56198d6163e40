// The native kernel of rollouts of many starting points, in fast numerics: all steps in one launch, weights and h rounded to f16
// where they are multiplied, sums and h itself in f32.
#pragma once

#include <string>

#include "forecast/rollout/weights/packing.hpp"

namespace lockstep::forecast {

inline constexpr int64_t kBatchRows = 64;  // of a gate in a block

/// How clusters share a rollout: each takes up to `entries` starting points of one member.
struct BatchPlan {
  int64_t blocks = 0;   // of a cluster
  int64_t entries = 0;  // a multiple of 8
  int64_t parts = 0;    // clusters of a member
  int64_t held = 0;     // steps of 16 columns whose weights are in registers
  int64_t shared_bytes = 0;
  std::string refusal;  // why the kernel does not run this rollout; empty: it does
};
/// Why f16 does not hold the model's values; empty: it does. Reads all of U, so only a device that could run it is worth it.
std::string no_batch_values(const RolloutModel& model);

BatchPlan batch_plan(const Device& device, const RolloutModel& model, const RolloutOptions& options);

/// Fast numerics choose the kernel for so many members times starting points, of which 2 or more are starting points.
inline constexpr int64_t kFewestBatched = 16;
bool batch_gains(const Device& device, const RolloutModel& model);

/// Starting points of a cluster for which all steps take least, and how many clusters a member then has; `most`: that fit;
/// `at_once`: clusters.
struct BatchShare {
  int64_t entries, parts;
};
BatchShare share_batch(int64_t members, int64_t batch, int64_t most, int64_t at_once);

/// Clusters of so many blocks that run at a time, each block on a multiprocessor of its own: as measured, in proportion to the
/// multiprocessors; clusters of one block are as many as these. As measured where the device does not say its own.
int64_t clusters_at_once(const DeviceInfo& device, int64_t blocks);

/// Words of the buffer through which the blocks of all clusters exchange h and r h.
int64_t exchange_words(const BatchPlan& plan, int64_t members);

/// Launched over M `parts` groups.
Kernel batch_kernel(const BatchPlan& plan, const RolloutModel& model, GruForm form);

/// Sets zr and n: f16 of a block's 64 rows, gate by gate; first tiles of 64 columns for shared memory, lines of 128 bytes whose
/// 16-byte pieces are exchanged as wgmma reads them, then 16 bytes a lane for each step of 16 columns.
void pack_batch(const BatchPlan& plan, const RolloutModel& model, const RolloutLayout& layout,
                PackedWeights& packed);

}  // namespace lockstep::forecast
