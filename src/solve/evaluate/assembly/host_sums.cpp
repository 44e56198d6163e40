#include "solve/evaluate/assembly/host_sums.hpp"

#include <algorithm>
#include <span>

#include "primitives/sums/host_reduce.hpp"
#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve {

namespace {

double* doubles_of(const Buffer& buffer) { return reinterpret_cast<double*>(buffer.native()); }
std::span<double> span_of(const Buffer& buffer) { return {doubles_of(buffer), size_t(buffer.elements())}; }

}  // namespace

const variants::Computation& sums_computation() {
  static const variants::Computation computation(
      {.name = "solve.sums", .variants = {"device", "host"}, .axes = {"numbers"}});
  return computation;
}

std::unique_ptr<HostSums> HostSums::make(Evaluator::State& s) {
  // Of a state, and of instances times slots: beyond some, threads pay.
  int64_t slots = 0;
  bool plain = true;
  for (const BatchState& batch : s.batches) {
    plain &= !batch.assembly && !batch.term->energy() && !batch.host;
    slots += batch.n * int64_t(batch.term->widths().size());
  }
  const variants::Axis numbers{"numbers", double(std::max({slots, s.ambient, s.tangent}))};
  const auto applies = [&](int variant) -> std::string {
    if (variant == 0) return "";
    if (!(s.uses & kUseHost) || s.precision != Precision::f64) return "no direct solver in f64";
    if (!capabilities_of(s.device).vectors || s.device.numerics() != Numerics::exact)
      return "not a CPU in exact numerics";
    return plain ? "" : "energies, host terms, or batches in groups";
  };
  const bool host =
      variants::choose(sums_computation(), s.device, {{}, {&numbers, 1}}, s.sums, applies).variant == 1;
  return host ? std::unique_ptr<HostSums>(new HostSums(s)) : nullptr;
}

double HostSums::sum_costs() const { return primitives::host_chunked_sum(span_of(state_.costs)); }

double HostSums::linearize() {
  Evaluator::State& s = state_;
  if (linearize_.empty())
    for (const BatchState& batch : s.batches)
      linearize_.push_back(s.device.record(
          [&] { s.launch_instances(batch, s.x, s.values, kCost | kGradient | s.linearized_outputs()); }));
  std::span<double> gradient = span_of(s.gradient_sum);
  std::fill(gradient.begin(), gradient.end(), 0.0);
  const bool diagonal = s.wants_diagonal();
  if (diagonal) s.device.clear(s.block_diagonal);
  for (size_t b = 0; b < s.batches.size(); ++b) {
    const BatchState& batch = s.batches[b];
    s.note_launch(batch);
    s.device.replay(linearize_[b]);
    for (const ClassSums& c : batch.sums)
      c.gather.add_on_host(doubles_of(batch.gradient_slots) + int64_t(c.slots.first_row) * batch.n,
                           c.slots.width, true, c.few_tangent, c.many_tangent, gradient.data());
    if (diagonal) s.sum_diagonal_slots(batch, s.block_diagonal);
  }
  if (diagonal) s.sum_diagonal();
  return sum_costs();
}

double HostSums::try_step(const Buffer& step) {
  Evaluator::State& s = state_;
  if (step_ != step.native()) {
    try_ = s.device.record([&] {
      s.launch_retract(step);
      s.launch_cost(s.candidate);
    });
    step_ = step.native();
  }
  s.device.replay(try_);
  return sum_costs();
}

void HostSums::multiply(const Buffer& p, const Buffer& q) const {
  const Evaluator::State& s = state_;
  std::span<double> sums = span_of(q);
  std::fill(sums.begin(), sums.end(), 0.0);
  for (const BatchState& batch : s.batches) {
    Arguments arguments;
    arguments.set("p", p).set("blocks", batch.tangent_at).set("slots", batch.slots);
    if (batch.term->stored_count() > 0) arguments.set("jacobian", batch.jacobian);
    if (batch.n > 0) s.device.launch(product_kernel(batch.term, s.values.real, {}), {batch.n}, arguments);
    for (const ClassSums& c : batch.sums)
      c.gather.add_on_host(doubles_of(batch.slots) + int64_t(c.slots.first_row) * batch.n, c.slots.width,
                           true, c.few_tangent, c.many_tangent, sums.data());
  }
}

double HostSums::state_norm() const {
  const std::span<const double> x = span_of(state_.x);
  if (!state_.any_fixed) return primitives::host_norm(x);
  const std::span<const double> free = span_of(state_.free_numbers);
  std::vector<double> masked(x.size());
  for (size_t k = 0; k < x.size(); ++k) masked[k] = x[k] * free[k];
  return primitives::host_norm(masked);
}

}  // namespace lockstep::solve
