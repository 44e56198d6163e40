// Which rollouts the kernel for batches takes, and how clusters share them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device/capabilities.hpp"
#include "device/variants/variants.hpp"
#include "forecast/rollout/batch/batch.hpp"
#include "forecast/rollout/native.hpp"

namespace lockstep::forecast {

namespace {

constexpr int64_t kMostBatchBlocks = 8, kMostBatchEntries = 64, kMostBatchHeld = 24;
constexpr float kMostWeight = 60000, kMostState = 16;  // f16; exp of a state's logit without its greatest

/// Of `Shared` in layout.cu, which checks it.
int64_t batch_shared_bytes(int64_t blocks, int64_t entries, int64_t held, bool after) {
  const int64_t tiles = blocks - held / 4, fragments = 256 * entries, sums = 20 * entries;
  const int64_t bytes = 8192 * std::max<int64_t>(3 * tiles, 1) + 2 * blocks * 128 * entries + blocks * sums +
                        (after ? 6 : 5) * fragments + 16 * kBatchRows + 32 + 4 * entries +
                        8 * (2 * blocks + 2);
  return (bytes + 1023) / 1024 * 1024 + 1024;
}

std::string batch_refusal(const Device& device, const RolloutModel& model, const RolloutOptions& options) {
  const int64_t hidden = model.hidden();
  if (device.numerics() != Numerics::fast) return "exact numerics";
  if (std::string why = no_native_model(model, options); !why.empty()) return why;
  if (hidden % kBatchRows != 0 || hidden > kBatchRows * kMostBatchBlocks)
    return fmt::format("{} hidden values: clusters take multiples of {} up to {}", hidden, kBatchRows,
                       kBatchRows * kMostBatchBlocks);
  if (std::string why = no_native_device(device); !why.empty()) return why;
  return no_batch_values(model);
}

}  // namespace

std::string no_batch_values(const RolloutModel& model) {
  for (const Array& u : model.u)
    if (!all_within(u, kMostWeight))
      return fmt::format("a weight of U beyond {}, which f16 does not hold", kMostWeight);
  if (!all_within(model.h0, kMostState)) return fmt::format("a value of h0 beyond {}", kMostState);
  return "";
}

int64_t clusters_at_once(const DeviceInfo& device, int64_t blocks) {
  const std::vector<double> measured =
      variants::measured("forecast.batch.clusters_at_once", device, kMostBatchBlocks);
  const double multiprocessors =
      capabilities_of(device).warp_lanes > 0 ? device.multiprocessors : measured[0];
  return std::max(int64_t(measured[size_t(blocks - 1)] * multiprocessors / measured[0]), int64_t(1));
}

BatchShare share_batch(int64_t members, int64_t batch, int64_t most, int64_t at_once) {
  BatchShare best{8, (batch + 7) / 8};
  double least = INFINITY;
  for (int64_t entries = 8; entries <= most; entries += 8) {
    const int64_t parts = (batch + entries - 1) / entries, waves = (members * parts + at_once - 1) / at_once;
    const double cost = double(waves) * (40.0 + double(entries));  // as measured at H = 512
    if (cost < least) least = cost, best = {entries, parts};
  }
  return best;
}

BatchPlan batch_plan(const Device& device, const RolloutModel& model, const RolloutOptions& options) {
  BatchPlan plan;
  plan.refusal = batch_refusal(device, model, options);
  const int64_t blocks = model.hidden() / kBatchRows;
  if (blocks < 1 || blocks > kMostBatchBlocks || model.hidden() % kBatchRows != 0) return plan;
  const bool after = options.form == GruForm::reset_after;
  const int64_t held = std::min(4 * blocks, kMostBatchHeld);
  // On another device the plan is that of sm_90.
  const int64_t shared = std::max<int64_t>(device.info().limits.shared_bytes, 232448);
  int64_t most = held == kMostBatchHeld ? 48 : kMostBatchEntries;  // registers
  while (most > 8 && batch_shared_bytes(blocks, most, held, after) > shared) most -= 8;
  const BatchShare share =
      share_batch(model.members(), model.batch(), most, clusters_at_once(device.info(), blocks));
  plan.blocks = blocks, plan.held = held, plan.entries = share.entries, plan.parts = share.parts;
  plan.shared_bytes = batch_shared_bytes(blocks, plan.entries, held, after);
  return plan;
}

bool batch_gains(const Device& device, const RolloutModel& model) {
  return device.numerics() == Numerics::fast && model.batch() > 1 &&
         model.members() * model.batch() >= kFewestBatched;
}

int64_t exchange_words(const BatchPlan& plan, int64_t members) {
  return members * plan.parts * plan.blocks * 2 * plan.entries * 32;
}

}  // namespace lockstep::forecast
