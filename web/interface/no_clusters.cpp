// A page has no CUDA: rollouts and sequences use the portable kernels.
#include "forecast/gru/cluster/cluster.hpp"
#include "forecast/rollout/batch/batch.hpp"
#include "forecast/rollout/cluster/cluster.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {

namespace {
constexpr auto kRefusal = "a page has no clusters of sm_90";
[[noreturn]] void refuse() { throw UnsupportedError("a native kernel", "forecast", kRefusal); }
}  // namespace

ClusterPlan cluster_plan(const Device&, const RolloutModel&, const RolloutOptions&) {
  ClusterPlan plan;
  plan.refusal = kRefusal;
  return plan;
}
Kernel cluster_kernel(const ClusterPlan&, const RolloutModel&, GruForm, Numerics) { refuse(); }
void pack_cluster(const ClusterPlan&, const RolloutModel&, const RolloutLayout&, PackedWeights&) { refuse(); }

BatchPlan batch_plan(const Device&, const RolloutModel&, const RolloutOptions&) {
  BatchPlan plan;
  plan.refusal = kRefusal;
  return plan;
}
bool batch_gains(const Device&, const RolloutModel&) { return false; }
int64_t exchange_words(const BatchPlan&, int64_t) { refuse(); }
Kernel batch_kernel(const BatchPlan&, const RolloutModel&, GruForm) { refuse(); }
std::string no_sequence_cluster(const Device&, const GruShape&) { return kRefusal; }
Kernel sequence_cluster(GruForm, int64_t, Numerics) { refuse(); }
void pack_batch(const BatchPlan&, const RolloutModel&, const RolloutLayout&, PackedWeights&) { refuse(); }

}  // namespace lockstep::forecast
