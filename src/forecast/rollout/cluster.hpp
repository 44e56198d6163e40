// The native kernel of rollouts: a cluster of 16 blocks a group on sm_90, all steps in one launch (cluster.cu). With the
// portable kernels' order of additions and their elementary functions it gives their bits in exact numerics.
#pragma once

#include <string>

#include "forecast/rollout/packing.hpp"

namespace lockstep::forecast {

/// How a cluster holds the weights.
struct ClusterPlan {
  int warp_rows = 0;               // rows of a warp
  int shared_z = 0, shared_n = 0;  // 16-byte pieces of a lane that stand in shared memory
  bool half = false;               // bf16 weights in pairs; fast numerics only
  int64_t shared_bytes = 0;
  std::string refusal;  // why no cluster runs this rollout; empty: one does
};
ClusterPlan cluster_plan(const Device& device, const RolloutModel& model, const RolloutOptions& options);

Kernel cluster_kernel(const ClusterPlan& plan, const RolloutModel& model, GruForm form, Numerics numerics);

/// Sets zr and n: lines of 32 pieces, (member, block, warp, gate, piece, row of the warp); a piece of lane j holds the columns
/// j + 32 c, in f32 four, in bf16 eight: words whose lower half is an even column's weight and which, as f32, are
/// the odd one's, each within half a unit of bf16. Blocks of `layout` are a cluster's.
void pack_cluster(const ClusterPlan& plan, const RolloutModel& model, const RolloutLayout& layout,
                  PackedWeights& packed);

}  // namespace lockstep::forecast
