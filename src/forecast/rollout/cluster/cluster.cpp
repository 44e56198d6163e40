#include "forecast/rollout/cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "core/memo.hpp"
#include "core/numbers/half.hpp"
#include "forecast/rollout/native.hpp"
#include "rollout_cluster_source.hpp"
#include "rollout_common_source.hpp"

namespace lockstep::forecast {

namespace {

constexpr int64_t kClusterBlocks = 16, kClusterRows = 4;  // rows of a row warp, f32
constexpr int64_t kMostClusterStates = 512;               // a lane keeps those it reads

int64_t threads_of(const ClusterPlan& plan) { return 32 * (plan.row_warps + plan.gate_warps); }

/// Of `Shared` in cluster/layout.cu, which checks it.
int64_t shared_bytes_of(const ClusterPlan& plan, int64_t hidden, bool after) {
  const int64_t rows = hidden / kClusterBlocks, sets = after ? 2 : 1;
  const int64_t vectors = (after ? 2 : 3) * (4 * hidden + (plan.tensor ? 64 : 0));
  const int64_t sums = 4 * 3 * sets * rows * (plan.tensor ? 4 : 12), kept = 4 * (3 * rows + 128) + 64;
  const int64_t pieces =
      (plan.shared_r + plan.shared_z + plan.shared_n) * (plan.tensor ? 2 : 1) * 32 * plan.row_warps + 1;
  return vectors + 32 + sums + kept + 16 * pieces;
}

float bf16_pair(float low, float high) {
  return std::bit_cast<float>(uint32_t(f32_to_bf16(low)) | uint32_t(f32_to_bf16(high)) << 16);
}

/// Row at a place of a member's vectors: rows whose columns a lane of a row warp reads together are
/// adjacent (cluster/layout.cu).
int64_t row_at(int64_t place) { return place / 128 * 128 + place % 4 * 32 + place / 4 % 32; }

/// f32: (member, block, warp, gate, piece, row of the warp) lines of 32 pieces; a piece of lane j holds
/// columns j + 128 piece + {0, 32, 64, 96}.
void append_chains(const Array& u, int64_t hidden, int64_t warp, std::vector<float>& to) {
  const int64_t first = warp * kClusterRows, member = first / hidden * hidden;
  for (int64_t piece = 0; piece < hidden / 128; ++piece)
    for (int64_t q = 0; q < kClusterRows; ++q) {
      const float* line =
          u.as<float>().data() + (member + row_at((first + q) % hidden)) * hidden + piece * 128;
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t k = 0; k < 4; ++k) to.push_back(line[lane + 32 * k]);
    }
}

/// bf16: (member, block, warp, gate, column step, tile) lines of 32 pieces, the left factors of m16n8k16. A
/// word stands for the columns j and j + 32 of a block, as those of the vectors do.
void append_tiles(const Array& u, int64_t hidden, int64_t warp, std::vector<float>& to) {
  const int64_t rows = hidden / kClusterBlocks, first = warp / 8 * rows + warp % 2 * 32,
                quarter = warp % 8 / 2;
  for (int64_t step = 0; step < hidden / 64; ++step)
    for (int64_t tile = 0; tile < 2; ++tile)
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t k = 0; k < 4; ++k) {
          const int64_t row = first + tile * 16 + lane / 4 + 8 * (k & 1);
          const int64_t word =
              hidden / 8 * quarter + step / 2 * 16 + 4 * (lane % 4) + 2 * (step % 2) + (k >> 1);
          const float* line = u.as<float>().data() + row * hidden + word / 32 * 64 + word % 32;
          to.push_back(bf16_pair(line[0], line[32]));
        }
}

/// h is a mean of h0 and values of tanh, so it stays where h0 is. Integers have no NaN: the head has none either.
bool stays_within_two(const RolloutModel& model) {
  return all_within(model.h0, 2) && all_within(model.head, 1e6f);
}

}  // namespace

ClusterPlan f32_cluster_plan(int64_t hidden, GruForm form) {
  ClusterPlan plan;
  if (hidden != 128 && hidden != 256 && hidden != 512) return plan;
  plan.row_warps = int(hidden / kClusterBlocks / kClusterRows);
  // Two warps send as few rows as fast, and get in the way of the row warps less.
  if (hidden <= 256) plan.gate_warps = 2;
  if (hidden == 512) plan.shared_z = 8, plan.row_registers = 200, plan.gate_registers = 104;
  plan.shared_bytes = shared_bytes_of(plan, hidden, form == GruForm::reset_after);
  return plan;
}

ClusterPlan cluster_plan(const Device& device, const RolloutModel& model, const RolloutOptions& options) {
  const int64_t hidden = model.hidden(), most = device.info().limits.shared_bytes;
  ClusterPlan plan = f32_cluster_plan(hidden, options.form);
  if (hidden == 1024 && device.numerics() == Numerics::fast) {
    plan.tensor = true, plan.row_warps = 8;
    plan.shared_r = 5, plan.shared_z = 12, plan.shared_n = 9;
    plan.row_registers = 216, plan.gate_registers = 72;
    plan.shared_bytes = shared_bytes_of(plan, hidden, options.form == GruForm::reset_after);
  }
  plan.bounded = model.storage() == Storage::f32 && stays_within_two(model);
  plan.refusal = no_native_device(device);
  if (plan.refusal.empty()) plan.refusal = no_native_model(model, options);
  if (!plan.refusal.empty()) return plan;
  if (plan.row_warps == 0)
    plan.refusal =
        fmt::format("{} hidden values: a cluster holds 128, 256, 512 and, in fast numerics, 1024", hidden);
  else if (model.head.size(0) - hidden > kMostClusterStates)
    plan.refusal =
        fmt::format("{} states: a cluster takes up to {}", model.head.size(0) - hidden, kMostClusterStates);
  else if (plan.shared_bytes > most)
    plan.refusal = fmt::format("{} bytes of shared memory a block, {} are possible", plan.shared_bytes, most);
  return plan;
}

std::vector<SourceDefinition> cluster_definitions(const ClusterPlan& plan, Numerics numerics) {
  return {{"FAST", numerics == Numerics::fast},
          {"TENSOR", plan.tensor},
          {"BOUNDED", plan.bounded},
          {"ROW_WARPS", plan.row_warps},
          {"GATE_WARPS", plan.gate_warps},
          {"SHARED_R", plan.shared_r},
          {"SHARED_Z", plan.shared_z},
          {"SHARED_N", plan.shared_n},
          {"ROW_REGISTERS", plan.row_registers},
          {"GATE_REGISTERS", plan.gate_registers},
          {"SHARED_BYTES", plan.shared_bytes}};
}

NativeShape cluster_shape(const ClusterPlan& plan) {
  return {threads_of(plan), plan.shared_bytes, kClusterBlocks};
}

namespace {
Kernel make_cluster_kernel(const ClusterPlan& plan, const RolloutModel& model, GruForm form,
                           Numerics numerics) {
  namespace parts = rollout_cluster_source;
  std::string source = native_definitions(model.hidden(), model.head.size(0) - model.hidden(), form,
                                          cluster_definitions(plan, numerics));
  for (const char* part :
       {parts::k_layout, rollout_common_source::k_fast, parts::k_functions, rollout_common_source::k_blocks,
        parts::k_exchange, parts::k_lines_packed, plan.tensor ? parts::k_rows_tensor : parts::k_rows_fma,
        parts::k_head, parts::k_owner, parts::k_gates, parts::k_start, parts::k_kernel})
    source += part;
  return native_rollout(model, form, std::move(source), "rollout_cluster", cluster_shape(plan));
}
}  // namespace

Kernel cluster_kernel(const ClusterPlan& plan, const RolloutModel& model, GruForm form, Numerics numerics) {
  static Memo<std::tuple<int64_t, int64_t, GruForm, Numerics, bool>, Kernel> made;
  const int64_t hidden = model.hidden(), states = model.head.size(0) - hidden;
  return made.get({hidden, states, form, numerics, plan.bounded},
                  [&] { return make_cluster_kernel(plan, model, form, numerics); });
}

void pack_cluster(const ClusterPlan& plan, const RolloutModel& model, const RolloutLayout& l,
                  PackedWeights& packed) {
  const auto lines = [&](std::span<const Array* const> gates) {
    std::vector<float> to;
    to.reserve(size_t(l.members * l.hidden * l.hidden * int64_t(gates.size()) / (plan.tensor ? 2 : 1)));
    for (int64_t warp = 0; warp < l.members * kClusterBlocks * plan.row_warps; ++warp)
      for (const Array* u : gates)
        plan.tensor ? append_tiles(*u, l.hidden, warp, to) : append_chains(*u, l.hidden, warp, to);
    const auto n = int64_t(to.size());
    return Array::of(std::move(to), {l.members * l.blocks, n / (l.members * l.blocks * 128), 128});
  };
  const Array* const zr[] = {&model.u[0], &model.u[1]};
  const Array* const n[] = {&model.u[2]};
  packed.zr = lines(zr);
  packed.n = lines(n);
}

}  // namespace lockstep::forecast
