// The native kernel of rollouts: a cluster of 16 blocks a group on sm_90, all steps in one launch (cluster/).
// With the portable kernels' order of additions and their elementary functions it gives their bits in exact
// numerics.
#pragma once

#include <string>
#include <vector>

#include "forecast/rollout/native.hpp"
#include "forecast/rollout/weights/packing.hpp"

namespace lockstep::forecast {

/// How the blocks of a cluster hold the weights.
struct ClusterPlan {
  bool tensor = false;   // bf16 weights on tensor cores; fast numerics only
  bool bounded = false;  // all of h stays within 2: softmax needs no maximum; in fast numerics integer sums
  int row_warps = 0;     // that multiply, of a block
  int gate_warps = 4;    // that compute the gates
  /// The part of a row warp's gates in shared memory: 16-byte pieces of a lane, on tensor cores 16
  /// columns of two tiles.
  int shared_r = 0, shared_z = 0, shared_n = 0;
  int row_registers = 0, gate_registers = 0;  // of a lane; 0: as the compiler has them
  int64_t shared_bytes = 0;
  std::string refusal;  // why no cluster runs this rollout; empty: one does
};
/// Of so many hidden values in f32, sequences and rollouts alike; no row warps where a cluster does not hold them.
ClusterPlan f32_cluster_plan(int64_t hidden, GruForm form);
ClusterPlan cluster_plan(const Device& device, const RolloutModel& model, const RolloutOptions& options);

Kernel cluster_kernel(const ClusterPlan& plan, const RolloutModel& model, GruForm form, Numerics numerics);

/// The numbers of a plan, as the sources have them.
std::vector<SourceDefinition> cluster_definitions(const ClusterPlan& plan, Numerics numerics);
NativeShape cluster_shape(const ClusterPlan& plan);

/// Sets zr and n, in the order in which row warps read them. Blocks of `layout` are a cluster's.
void pack_cluster(const ClusterPlan& plan, const RolloutModel& model, const RolloutLayout& layout,
                  PackedWeights& packed);

}  // namespace lockstep::forecast
