#include "forecast/rollout/cluster.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "cluster_source.hpp"
#include "forecast/rollout/kernels.hpp"
#include "lockstep/native.hpp"

namespace lockstep::forecast {

namespace {

constexpr int64_t kClusterBlocks = 16;

int64_t warps_of(const ClusterPlan& plan, int64_t hidden) { return hidden / kClusterBlocks / plan.warp_rows; }

/// Of `Shared` in cluster.cu, which checks it.
int64_t shared_bytes_of(const ClusterPlan& plan, int64_t hidden, bool after) {
  const int64_t rows = hidden / kClusterBlocks, stride = plan.warp_rows == 4 ? 12 : 4;
  const int64_t words =
      3 * hidden + (after ? 6 : 3) * rows * stride + 3 * rows + 128 + (hidden > 512 ? hidden : 4);
  const int64_t pieces = (plan.shared_z + plan.shared_n) * 32 * warps_of(plan, hidden) + 1;
  return (4 * words + 8 + 24 + 15) / 16 * 16 + 16 * pieces;
}

uint32_t bf16_pair(float even, float odd) {
  uint32_t low = std::bit_cast<uint32_t>(even);
  low = (low + 0x7fff + ((low >> 16) & 1)) >> 16;
  uint32_t best = 0;
  float least = INFINITY;
  for (const int32_t step : {-1, 0, 1}) {
    const uint32_t word = ((std::bit_cast<uint32_t>(odd) & 0xffff0000u) + uint32_t(step * 0x10000)) | low;
    const float error = std::abs(std::bit_cast<float>(word) - odd);
    if (error < least) least = error, best = word;
  }
  return best;
}

}  // namespace

ClusterPlan cluster_plan(const Device& device, const RolloutModel& model, const RolloutOptions& options) {
  ClusterPlan plan;
  const DeviceInfo& info = device.info();
  const int64_t hidden = model.hidden();
  const bool fast = device.numerics() == Numerics::fast;
  if (hidden == 128 || hidden == 256 || hidden == 512) {
    plan.warp_rows = 4;
    plan.shared_z = hidden == 512 ? 4 : 0;
  } else if (hidden == 1024 && fast) {
    plan.warp_rows = 8, plan.shared_z = 32, plan.shared_n = 18, plan.half = true;
  }
  if (plan.warp_rows > 0)
    plan.shared_bytes = shared_bytes_of(plan, hidden, options.form == GruForm::reset_after);
  if (info.kind != DeviceKind::cuda || info.architecture != "sm_90")
    plan.refusal = fmt::format("{} has no clusters of sm_90", info.name);
  else if (model.storage() != Storage::f32)
    plan.refusal = "weights in f64";
  else if (options.heads != Heads::classic)
    plan.refusal = fmt::format("{} heads", name(options.heads));
  else if (plan.warp_rows == 0)
    plan.refusal =
        fmt::format("{} hidden values: a cluster holds 128, 256, 512 and, in fast numerics, 1024", hidden);
  else if (plan.shared_bytes > info.limits.shared_bytes)
    plan.refusal = fmt::format("{} bytes of shared memory a block, {} are possible", plan.shared_bytes,
                               info.limits.shared_bytes);
  return plan;
}

Kernel cluster_kernel(const ClusterPlan& plan, const RolloutModel& model, GruForm form, Numerics numerics) {
  static std::mutex mutex;
  static std::map<std::tuple<int64_t, int64_t, GruForm, Numerics>, Kernel> made;
  const int64_t hidden = model.hidden(), states = model.head.size(0) - hidden;
  const std::lock_guard lock(mutex);
  const auto [entry, first] = made.try_emplace({hidden, states, form, numerics});
  if (!first) return entry->second;
  const std::string source = fmt::format(
      "#define HIDDEN {}\n#define STATES {}\n#define RESET_AFTER {}\n#define FAST {}\n#define HALF_WEIGHTS "
      "{}\n"
      "#define WARP_ROWS {}\n#define SHARED_Z {}\n#define SHARED_N {}\n#define SHARED_BYTES {}\n#define "
      "ENTRY "
      "rollout_cluster\n{}",
      hidden, states, int(form == GruForm::reset_after), int(numerics == Numerics::fast), int(plan.half),
      plan.warp_rows, plan.shared_z, plan.shared_n, plan.shared_bytes, kClusterSource);
  entry->second = native_kernel(one_launch_kernel<f32>(form, {}, int(hidden), int(hidden)),
                                {.cuda = {source, "rollout_cluster"},
                                 .block = {int32_t(32 * warps_of(plan, hidden)), 1, 1},
                                 .dynamic_shared_bytes = plan.shared_bytes,
                                 .cluster = int32_t(kClusterBlocks)});
  return entry->second;
}

void pack_cluster(const ClusterPlan& plan, const RolloutModel& model, const RolloutLayout& l,
                  PackedWeights& packed) {
  const int64_t width = plan.half ? 8 : 4, pieces = l.hidden / 32 / width, warps = warps_of(plan, l.hidden);
  const auto lines = [&](std::span<const Array* const> gates) {
    std::vector<float> to;
    to.reserve(size_t(l.members * l.hidden * l.hidden * int64_t(gates.size()) / (plan.half ? 2 : 1)));
    const int64_t count = int64_t(gates.size()) * pieces * plan.warp_rows;
    for (int64_t warp = 0; warp < l.members * kClusterBlocks * warps; ++warp)
      for (int64_t line = 0; line < count; ++line) {
        const int64_t gate = line / (pieces * plan.warp_rows), piece = line / plan.warp_rows % pieces;
        const int64_t row = warp * plan.warp_rows + line % plan.warp_rows;
        const float* u = gates[size_t(gate)]->as<float>().data() + row * l.hidden + piece * width * 32;
        for (int64_t lane = 0; lane < 32; ++lane)
          for (int64_t word = 0; word < 4; ++word)
            to.push_back(plan.half
                             ? std::bit_cast<float>(bf16_pair(u[lane + 64 * word], u[lane + 64 * word + 32]))
                             : u[lane + 32 * word]);
      }
    const auto n = int64_t(to.size());
    return Array::of(std::move(to), {l.members * l.blocks, n / (l.members * l.blocks * 128), 128});
  };
  const Array* const zr[] = {&model.u[0], &model.u[1]};
  const Array* const n[] = {&model.u[2]};
  packed.zr = lines(zr);
  packed.n = lines(n);
}

}  // namespace lockstep::forecast
