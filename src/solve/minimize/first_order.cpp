// SGD with momentum, Adam, AdamW, over all residuals at once. The cost may rise; the best point is kept.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "solve/minimize/run.hpp"
#include "solve/minimize/vector_ops.hpp"

namespace lockstep::solve {
namespace {

constexpr int kInterval = 50;
constexpr double kBeta1 = 0.9, kBeta2 = 0.999;  // as in adam_step()

class FirstOrder final : public Minimizer {
 public:
  explicit FirstOrder(Run& run) : run_(run) {}
  double gradient_max() const override { return gradient_max_; }
  int snapshot_interval() const override { return kInterval; }
  const std::vector<double>* best() const override { return best_cost_ < cost_ ? &best_ : nullptr; }
  double best_cost() const override { return best_cost_; }

  double restore(const Snapshot& snapshot) override {
    run_.evaluate([&] {
      step_ = run_.vector(), first_ = run_.vector(), second_ = run_.vector(), point_ = run_.vector();
      cost_ = best_cost_ = run_.evaluator().value_and_gradient();
      gradient_max_ = run_.gradient_max();
      reader_ = std::make_unique<StepReader>(run_.evaluator());
      steps_ = 0;
      // Decay pulls numbers that are their own tangent coordinates; others have no place to decay to.
      if (run_.options().method == Method::adamw &&
          run_.evaluator().ambient_size() == run_.evaluator().tangent_size())
        to_device(device(), run_.evaluator().state(), point_);
      if (snapshot.vectors.size() == 4) {
        to_device(device(), snapshot.vectors[0], first_);
        to_device(device(), snapshot.vectors[1], second_);
        to_device(device(), snapshot.vectors[2], point_);
        best_ = snapshot.vectors[3];
        steps_ = int64_t(snapshot.scalars[0]), best_cost_ = snapshot.scalars[1];
      }
    });
    return cost_;
  }
  void save(Snapshot& snapshot) override {
    snapshot.scalars = {double(steps_), best_cost_};
    for (const Buffer* buffer : {&first_, &second_, &point_})
      snapshot.vectors.push_back(to_host(device(), *buffer));
    snapshot.vectors.push_back(best_);
  }

  std::optional<Termination> iterate(Iteration& row) override {
    const Options& options = run_.options();
    const double before = cost_;
    double length = 0;
    run_.solve([&] {
      ++steps_;
      if (options.method == Method::sgd) {
        momentum_step(device(), run_.evaluator().gradient(), first_, step_, options.momentum,
                      options.learning_rate);
      } else {
        const double decay =
            options.method == Method::adamw ? options.learning_rate * options.weight_decay : 0;
        adam_step(device(), run_.evaluator().gradient(), first_, second_, point_, step_,
                  options.learning_rate, 1 / (1 - std::pow(kBeta1, double(steps_))),
                  1 / (1 - std::pow(kBeta2, double(steps_))), decay);
      }
    });
    run_.evaluate([&] {
      Evaluator& evaluator = run_.evaluator();
      if (run_.bounded()) run_.project(step_);
      const StepNumbers numbers = reader_->try_gradient(step_);
      if (!(numbers.cost < before) && before <= best_cost_) best_ = evaluator.state(), best_cost_ = before;
      evaluator.accept();
      length = numbers.step_norm;
      cost_ = numbers.cost;
      best_cost_ = std::min(best_cost_, std::isfinite(cost_) ? cost_ : best_cost_);
      gradient_max_ = run_.bounded() ? run_.gradient_max() : numbers.gradient_max;
      state_norm_ = numbers.state_norm;
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
    if (gradient_max_ <= options.gradient_tolerance) return Termination::gradient_tolerance;
    if (std::abs(row.cost_change) < options.function_tolerance * std::abs(before))
      return Termination::function_tolerance;
    if (length <= options.parameter_tolerance * (state_norm_ + options.parameter_tolerance))
      return Termination::parameter_tolerance;
    return std::nullopt;
  }

 private:
  const Device& device() { return run_.device(); }

  Run& run_;
  std::unique_ptr<StepReader> reader_;
  Buffer step_, first_, second_, point_;
  std::vector<double> best_;  // where best_cost_ is less than cost_
  double cost_ = 0, best_cost_ = 0, gradient_max_ = 0, state_norm_ = 0;
  int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Minimizer> make_first_order(Run& run) { return std::make_unique<FirstOrder>(run); }

}  // namespace lockstep::solve
