#include "forecast/gru/cluster/cluster.hpp"

#include <fmt/format.h>

#include <tuple>

#include "core/memo.hpp"
#include "forecast/rollout/chains.hpp"
#include "forecast/rollout/cluster/cluster.hpp"
#include "gru_cluster_source.hpp"
#include "rollout_cluster_source.hpp"
#include "rollout_common_source.hpp"

namespace lockstep::forecast {

namespace {

using In = Grid<f32, 2>;

/// The steps of a sequence by one group of 32 lanes, a row after the other.
struct SequenceGroup {
  const In &u, &in;
  const InOut<f32, 2>&states, &gates, &extra;
  Val<i32> lane, hidden, sequence, batch;

  /// Of row `row` of U^T with a line of the states or of r h.
  Val<f32> product(const Val<i32>& row, const InOut<f32, 2>& x, const Val<i32>& line) const {
    return lane_chain_sums<f32>(
        1, 1, hidden, true, lane, [&](int, const Val<i32>& k) { return Val<f32>(u(row, k)); },
        [&](int, const Val<i32>& k) { return Val<f32>(x(line, k)); })[0];
  }
  void before(const Val<i32>& t) const {
    const Val<i32> line = t * batch + sequence, next = line + batch;
    for_(0, hidden, 1, [&](Val<i32> z) {
      const Val<i32> r = z + hidden;
      const Val<f32> update = sigmoid(in(line, z) + product(z, states, line)),
                     reset = sigmoid(in(line, r) + product(r, states, line));
      if_(lane == 0, [&] {
        gates(line, z) = update;
        gates(line, r) = reset;
        extra(line, z) = reset * states(line, z);
      });
    });
    barrier();
    for_(0, hidden, 1, [&](Val<i32> z) {
      const Val<i32> n = z + hidden * 2;
      const Val<f32> value = tanh(in(line, n) + product(n, extra, line)), own = states(line, z);
      if_(lane == 0, [&] {
        gates(line, n) = value;
        states(next, z) = fma(Val<f32>(gates(line, z)), value - own, own);
      });
    });
    barrier();
  }
  void after(const Val<i32>& t, const Grid<f32, 1>& bias) const {
    const Val<i32> line = t * batch + sequence, next = line + batch;
    for_(0, hidden, 1, [&](Val<i32> z) {
      const Val<i32> r = z + hidden, n = r + hidden;
      const auto of_h = [&](const Val<i32>& row) { return product(row, states, line) + bias[row]; };
      const Val<f32> update = sigmoid(in(line, z) + of_h(z)), reset = sigmoid(in(line, r) + of_h(r));
      const Val<f32> inner = of_h(n), value = tanh(fma(reset, inner, in(line, n)));
      if_(lane == 0, [&] {
        gates(line, z) = update;
        gates(line, r) = reset;
        gates(line, n) = value;
        extra(line, z) = inner;
        states(next, z) = fma(update, states(line, z) - value, value);
      });
    });
    barrier();
  }
};

}  // namespace

std::string no_sequence_cluster(const Device& device, const GruShape& shape) {
  if (shape.storage != Storage::f32) return "a sequence in f64";
  if (shape.weights != WeightType::f32) return fmt::format("weights in {}", name(shape.weights));
  const ClusterPlan plan = f32_cluster_plan(shape.hidden, shape.form);
  if (plan.row_warps == 0)
    return fmt::format("{} hidden values: a cluster holds 128, 256 and 512", shape.hidden);
  if (std::string why = no_native_device(device); !why.empty()) return why;
  const int64_t most = device.info().limits.shared_bytes;
  if (plan.shared_bytes > most)
    return fmt::format("{} bytes of shared memory a block, {} are possible", plan.shared_bytes, most);
  return {};
}

Kernel sequence_kernel(GruForm form) {
  const KernelOptions options{.group = {kChains}};
  if (form == GruForm::reset_after)
    return kernel(
        "forecast.gru.sequence.reset-after.f32",
        [](Group<1> g, In u, In in, InOut<f32, 2> states, InOut<f32, 2> gates, InOut<f32, 2> extra,
           Grid<f32, 1> bias, Param<i32> steps, Param<i32> batch) {
          const SequenceGroup at{u, in, states, gates, extra, g.lane(), u.size(1), g.id(), batch};
          for_(0, steps, 1, [&](Val<i32> t) { at.after(t, bias); });
        },
        options);
  return kernel(
      "forecast.gru.sequence.f32",
      [](Group<1> g, In u, In in, InOut<f32, 2> states, InOut<f32, 2> gates, InOut<f32, 2> extra,
         Param<i32> steps, Param<i32> batch) {
        const SequenceGroup at{u, in, states, gates, extra, g.lane(), u.size(1), g.id(), batch};
        for_(0, steps, 1, [&](Val<i32> t) { at.before(t); });
      },
      options);
}

Kernel sequence_cluster(GruForm form, int64_t hidden, Numerics numerics) {
  namespace shared = rollout_cluster_source;
  namespace common = rollout_common_source;
  static Memo<std::tuple<GruForm, int64_t, Numerics>, Kernel> made;
  return made.get({form, hidden, numerics}, [&] {
    const ClusterPlan plan = f32_cluster_plan(hidden, form);
    std::string source = native_definitions(hidden, 0, form, cluster_definitions(plan, numerics));
    for (const char* part : {shared::k_layout, common::k_fast, shared::k_functions, common::k_blocks,
                             shared::k_exchange, gru_cluster_source::k_lines, shared::k_rows_fma,
                             shared::k_owner, shared::k_start, gru_cluster_source::k_sequence})
      source += part;
    return native_clusters(sequence_kernel(form), std::move(source), "gru_cluster", cluster_shape(plan));
  });
}

}  // namespace lockstep::forecast
