#include "solve/minimize/methods/graduation.hpp"

#include <algorithm>
#include <cmath>

#include "lockstep/solve/evaluation.hpp"
#include "solve/minimize/checkpoint.hpp"
#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

bool has_scale(const ExpressionKey& t) { return t.has_loss() && !t.loss_expression; }

/// The scales of all named losses; they are as they were when it goes.
class Scales {
 public:
  explicit Scales(Problem::State& state) : state_(state) {
    each([&](double& scale) { own_.push_back(scale); });
  }
  ~Scales() { widen(1); }
  Scales(const Scales&) = delete;
  Scales& operator=(const Scales&) = delete;
  void widen(double factor) {
    size_t k = 0;
    each([&](double& scale) { scale = factor * own_[k++]; });
  }
  bool empty() const { return own_.empty(); }

 private:
  template <class F>
  void each(F f) {
    for (Batch& batch : state_.batches) {
      const size_t width = size_t(batch.expression->constants);
      if (!has_scale(*batch.expression)) continue;
      for (Segment& segment : batch.segments)
        for (size_t at = width; at <= segment.constants.size(); at += width) f(segment.constants[at - 1]);
    }
  }
  Problem::State& state_;
  std::vector<double> own_;
};

/// The largest |r| over the scale of its loss.
double largest_ratio(const Problem& problem, Context& context) {
  double largest = 0;
  for (const InstanceResidual& r : residuals_by_instance(problem, context)) {
    if (!r.enabled || !(r.scale > 0)) continue;
    largest = std::max(largest, r.norm / r.scale);
  }
  return largest;
}

}  // namespace

Summary minimize_graduated(Problem& problem, Context& context, const Options& options, CheckpointFile& file) {
  Options now = options;
  now.graduation = {};
  Scales scales(problem.state());
  if (scales.empty()) return minimize_next(problem, context, now, file);
  EvaluateOptions cost_only;
  cost_only.residuals = cost_only.gradient = cost_only.jacobian = false;
  const double initial_cost = evaluate(problem, context, cost_only).cost;
  std::vector<Iteration> trace;
  int64_t linear_iterations = 0;
  if (options.callback)
    now.callback = [&](const Iteration& given) {
      Iteration row = given;
      row.iteration += int(trace.size());
      return options.callback(row);
    };
  const auto stage = [&](double wide, int iterations) {
    scales.widen(wide);
    now.max_iterations = iterations;
    Summary summary = minimize_next(problem, context, now, file);
    for (Iteration& row : summary.trace) {
      row.iteration = int(trace.size()) + 1;
      trace.push_back(row);
    }
    linear_iterations += summary.linear_iterations;
    return summary;
  };
  const double factor = options.graduation.factor;
  Summary summary;
  bool goes_on = true;
  for (double wide = largest_ratio(problem, context); wide > 1 && goes_on; wide /= factor) {
    summary = stage(wide, std::min(options.graduation.iterations, options.max_iterations));
    goes_on = summary.termination != Termination::stopped && summary.termination != Termination::failure &&
              summary.termination != Termination::time_limit;
  }
  if (goes_on) summary = stage(1, options.max_iterations);
  summary.initial_cost = initial_cost;
  summary.trace = std::move(trace);
  summary.iterations = int(summary.trace.size());
  summary.linear_iterations = linear_iterations;
  return summary;
}

}  // namespace lockstep::solve
