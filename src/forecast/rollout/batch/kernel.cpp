// Source and weights of the kernel for batches.
#include <fmt/format.h>

#include <bit>
#include <tuple>

#include "core/memo.hpp"
#include "core/numbers/half.hpp"
#include "forecast/rollout/batch/batch.hpp"
#include "forecast/rollout/native.hpp"
#include "rollout_batch_source.hpp"
#include "rollout_common_source.hpp"

namespace lockstep::forecast {

namespace {

constexpr int64_t kBatchThreads = 384;

/// wgmma of 64 rows and 16 columns for `entries` starting points: its operands are that many registers, by number.
std::string product_functions(int64_t entries) {
  const int64_t sums = entries / 2;
  std::string registers, operands;
  for (int64_t i = 0; i < sums; ++i) {
    registers += fmt::format("{}%{}", i ? ", " : "", i);
    operands += fmt::format("{}\"+f\"(sum[{}])", i ? ", " : "", i);
  }
  const auto function = [&](const char* name, const char* parameter, const std::string& left,
                            const char* values, int64_t count, const char* end) {
    return fmt::format(
        "FN void {}(float (&sum)[{}], {}, unsigned long long columns) {{\n"
        "  asm volatile(\"wgmma.mma_async.sync.aligned.m64n{}k16.f32.f16.f16 {{{}}}, {}, %{}, 1, 1, 1, "
        "{};\"\n"
        "    : {} : {}, \"l\"(columns));\n}}\n",
        name, sums, parameter, entries, registers, left, sums + count, end, operands, values);
  };
  return function("product_held", "const u32 (&rows)[4]",
                  fmt::format("{{%{}, %{}, %{}, %{}}}", sums, sums + 1, sums + 2, sums + 3),
                  R"("r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]))", 4, "0") +
         function("product_shared", "unsigned long long rows", fmt::format("%{}", sums), R"("l"(rows))", 1,
                  "0, 0");
}

Kernel make_batch_kernel(const BatchPlan& plan, const RolloutModel& model, GruForm form) {
  namespace parts = rollout_batch_source;
  const SourceDefinition more[] = {
      {"ENTRIES", plan.entries}, {"HELD", plan.held}, {"SHARED_BYTES", plan.shared_bytes}};
  std::string source = native_definitions(model.hidden(), model.head.size(0) - model.hidden(), form, more) +
                       parts::k_layout + product_functions(plan.entries);
  for (const char* part : {rollout_common_source::k_blocks, rollout_common_source::k_fast, parts::k_exchange,
                           parts::k_rows, parts::k_start, parts::k_heads, parts::k_gates, parts::k_kernel})
    source += part;
  return native_rollout(model, form, std::move(source), "rollout_batch",
                        {kBatchThreads, plan.shared_bytes, plan.blocks});
}

}  // namespace

Kernel batch_kernel(const BatchPlan& plan, const RolloutModel& model, GruForm form) {
  static Memo<std::tuple<int64_t, int64_t, GruForm, int64_t>, Kernel> made;
  const int64_t hidden = model.hidden(), states = model.head.size(0) - hidden;
  return made.get({hidden, states, form, plan.entries}, [&] { return make_batch_kernel(plan, model, form); });
}

void pack_batch(const BatchPlan& plan, const RolloutModel& model, const RolloutLayout& l,
                PackedWeights& packed) {
  const int64_t tiles = plan.blocks - plan.held / 4;
  const auto append = [&](const Array& u, int64_t block, std::vector<float>& to) {
    const float* rows = u.as<float>().data() + block * kBatchRows * l.hidden;
    const auto put = [&](int64_t row, int64_t column) {
      const float* v = rows + row * l.hidden + column;
      to.push_back(std::bit_cast<float>(uint32_t(f32_to_f16(v[0])) | uint32_t(f32_to_f16(v[1])) << 16));
    };
    for (int64_t tile = 0; tile < tiles; ++tile)
      for (int64_t row = 0; row < kBatchRows; ++row)
        for (int64_t k = 0; k < 32; ++k) put(row, tile * 64 + ((k / 4) ^ (row % 8)) * 8 + k % 4 * 2);
    for (int64_t step = 4 * tiles; step < 4 * plan.blocks; ++step)
      for (int64_t thread = 0; thread < 128; ++thread)
        for (int64_t k = 0; k < 4; ++k)
          put(thread / 32 * 16 + thread % 32 / 4 + k % 2 * 8, step * 16 + thread % 4 * 2 + k / 2 * 8);
  };
  const auto gates = [&](std::span<const Array* const> of) {
    std::vector<float> to;
    to.reserve(size_t(l.members * l.hidden * l.hidden / 2 * int64_t(of.size())));
    for (int64_t block = 0; block < l.members * plan.blocks; ++block)
      for (const Array* u : of) append(*u, block, to);
    const auto n = int64_t(to.size());
    return Array::of(std::move(to), {l.members * plan.blocks, n / (l.members * plan.blocks * 32), 32});
  };
  const Array* const zr[] = {&model.u[0], &model.u[1]};
  const Array* const n[] = {&model.u[2]};
  packed.zr = gates(zr);
  packed.n = gates(n);
}

}  // namespace lockstep::forecast
