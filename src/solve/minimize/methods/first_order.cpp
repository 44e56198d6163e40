// First-order methods over all residuals at once. The cost may rise; the best point is kept.
#include "optimize/first_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "optimize/vectors.hpp"
#include "solve/minimize/methods/evaluator_objective.hpp"
#include "solve/minimize/run.hpp"

namespace lockstep::solve {
namespace {

class FirstOrder final : public Minimizer {
 public:
  explicit FirstOrder(Run& run) : run_(run) {}
  double gradient_max() const override { return gradient_max_; }
  int snapshot_interval() const override { return kSnapshotInterval; }
  const std::vector<double>* best() const override { return best_cost_ < cost_ ? &best_ : nullptr; }
  double best_cost() const override { return best_cost_; }

  double restore(const Snapshot& snapshot) override {
    run_.evaluate([&] {
      cost_ = best_cost_ = run_.evaluator().value_and_gradient();
      gradient_max_ = run_.gradient_max();
      objective_.emplace(run_.evaluator());
      state_.emplace(*objective_, optimize::first_order(name(run_.options().method))->method);
      reader_.emplace(*objective_);
      if (snapshot.vectors.size() == 4) {
        state_->restore(device(), std::span(snapshot.vectors).first(3), int64_t(snapshot.scalars[0]));
        best_ = snapshot.vectors[3];
        best_cost_ = snapshot.scalars[1];
      }
    });
    return cost_;
  }
  void save(Snapshot& snapshot) override {
    snapshot.scalars = {double(state_->steps()), best_cost_};
    snapshot.vectors = state_->vectors(device());
    snapshot.vectors.push_back(best_);
  }

  std::optional<Termination> iterate(Iteration& row) override {
    const Options& options = run_.options();
    const double before = cost_;
    double length = 0;
    optimize::Options step_options;
    step_options.learning_rate = options.learning_rate;
    step_options.momentum = options.momentum, step_options.weight_decay = options.weight_decay;
    run_.solve([&] { state_->next(*objective_, step_options); });
    run_.evaluate([&] {
      Evaluator& evaluator = run_.evaluator();
      if (run_.bounded()) run_.project(state_->step());
      const optimize::StepNumbers numbers = reader_->evaluate(state_->step());
      if (!(numbers.value < before) && before <= best_cost_) best_ = evaluator.state(), best_cost_ = before;
      evaluator.accept();
      length = numbers.step_norm;
      cost_ = numbers.value;
      best_cost_ = std::min(best_cost_, std::isfinite(cost_) ? cost_ : best_cost_);
      gradient_max_ = run_.bounded() ? run_.gradient_max() : numbers.gradient_max;
      state_norm_ = numbers.point_norm;
    });
    row.cost = cost_;
    row.cost_change = before - cost_;
    row.gradient_max = gradient_max_;
    row.step_norm = length;
    row.damping = options.learning_rate;
    row.accepted = true;
    if (!std::isfinite(cost_) || !std::isfinite(gradient_max_)) {
      run_.message = "cost or derivatives are not finite; a smaller learning rate may help";
      cost_ = std::numeric_limits<double>::infinity();
      return Termination::failure;
    }
    if (run_.stationary(gradient_max_, cost_)) return Termination::gradient_tolerance;
    if (std::abs(row.cost_change) < options.function_tolerance * std::abs(before) || run_.vanished(cost_))
      return Termination::function_tolerance;
    if (length <= options.parameter_tolerance * state_norm_ &&
        run_.small_in_each_set(state_->step(), options.parameter_tolerance))
      return Termination::parameter_tolerance;
    return std::nullopt;
  }

 private:
  const Device& device() { return run_.device(); }

  Run& run_;
  std::optional<EvaluatorObjective> objective_;
  std::optional<optimize::FirstOrderState> state_;
  std::optional<optimize::StepReader> reader_;
  std::vector<double> best_;  // where best_cost_ is less than cost_
  double cost_ = 0, best_cost_ = 0, gradient_max_ = 0, state_norm_ = 0;
};

}  // namespace

std::unique_ptr<Minimizer> make_first_order(Run& run) { return std::make_unique<FirstOrder>(run); }

}  // namespace lockstep::solve
