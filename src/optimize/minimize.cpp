// The loops over L-BFGS and first-order steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lockstep/error.hpp"
#include "lockstep/primitives.hpp"
#include "optimize/first_order.hpp"
#include "optimize/lbfgs/memory.hpp"
#include "optimize/vectors.hpp"

namespace lockstep::optimize {

VectorObjective::VectorObjective(const Device& device, const Buffer& start, Storage value_storage)
    : device_(device) {
  const auto real = [](Storage storage) { return storage == Storage::f32 || storage == Storage::f64; };
  if (!start || start.shape().rank() != 1 || !real(start.storage()) || !real(value_storage))
    throw InputError("the start of a minimisation", "optimize", "a vector of f32 or f64");
  if (size_of(value_storage) < size_of(start.storage()))
    throw InputError("a value in f32 of a vector in f64", "optimize", "a value that is not narrower");
  for (Buffer* b : {&point_, &trial_, &gradient_}) *b = device.allocate(start.storage(), {start.elements()});
  value_ = device.allocate(value_storage, {1});
  device.copy(start, point_);
}

void VectorObjective::launch(const Buffer& step) {
  device_.copy(point_, trial_);
  primitives::axpy(device_, 1, step, trial_);
  launch_at(trial_, gradient_, value_);
}

namespace {

void check_options(const Options& options) {
  const auto refuse = [](const char* what, double value, const char* expected) {
    throw InputError(fmt::format("{} {}", what, value), "optimize options", expected);
  };
  for (const auto& [what, value] : {std::pair("value_tolerance", options.value_tolerance),
                                    {"gradient_tolerance", options.gradient_tolerance},
                                    {"step_tolerance", options.step_tolerance},
                                    {"momentum", options.momentum},
                                    {"weight_decay", options.weight_decay},
                                    {"max_iterations", double(options.max_iterations)}})
    if (!(value >= 0)) refuse(what, value, "a number that is not negative");
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate))
    refuse("learning_rate", options.learning_rate, "a positive number");
  if (options.history < 1 || options.history > LbfgsLayout::kMostHistory)
    refuse("history", options.history, "1 to 1000");
}

/// The loop around the steps of both kinds of methods.
class Loop {
 public:
  Loop(Objective& objective, const Options& options) : objective_(objective), options_(options) {}
  virtual ~Loop() = default;

  Result run() {
    start();
    if (!std::isfinite(value_))
      throw InputError(fmt::format("value {} at the start", value_), "optimize", "a finite start");
    result_.first_value = value_;
    std::optional<Termination> end;
    if (!std::isfinite(gradient_max_)) end = Termination::failure;
    if (gradient_max_ <= options_.gradient_tolerance) end = Termination::gradient_tolerance;
    while (!end) {
      if (int(result_.trace.size()) >= options_.max_iterations) {
        end = Termination::max_iterations;
        break;
      }
      Iteration row;
      const double before = value_;
      end = step(row);
      row.iteration = int(result_.trace.size()) + 1;
      row.value = value_, row.value_change = before - value_, row.gradient_max = gradient_max_;
      result_.trace.push_back(row);
      result_.evaluations += row.trials;
      if (!end && row.step_norm != 0) end = converged(row, before);
      if (options_.callback && !options_.callback(row) && !end) end = Termination::stopped;
    }
    finish();
    result_.termination = *end;
    result_.iterations = int(result_.trace.size());
    result_.value = value_, result_.gradient_max = gradient_max_;
    return std::move(result_);
  }

 protected:
  /// value_, gradient_max_ at the point.
  virtual void start() = 0;
  virtual std::optional<Termination> step(Iteration& row) = 0;
  /// Leaves the best point in the objective.
  virtual void finish() = 0;

  const Device& device() const { return objective_.device(); }

  Objective& objective_;
  const Options& options_;
  Result result_;
  double value_ = 0, gradient_max_ = 0, point_norm_ = 0;

 private:
  std::optional<Termination> converged(const Iteration& row, double before) const {
    if (!std::isfinite(value_) || !std::isfinite(gradient_max_)) return Termination::failure;
    if (gradient_max_ <= options_.gradient_tolerance) return Termination::gradient_tolerance;
    if (std::abs(row.value_change) < options_.value_tolerance * std::abs(before))
      return Termination::value_tolerance;
    if (row.step_norm <= options_.step_tolerance * (point_norm_ + options_.step_tolerance))
      return Termination::step_tolerance;
    return std::nullopt;
  }
};

class LbfgsMethod final : public Loop {
 public:
  LbfgsMethod(Objective& objective, const Options& options)
      : Loop(objective, options), memory_(objective, options.history, false) {}

 private:
  void start() override {
    const Buffer none =
        device().allocate(objective_.gradient().storage(), {objective_.gradient().elements()});
    device().clear(none);
    StepReader reader(objective_);
    const StepNumbers numbers = reader.evaluate(none);
    value_ = numbers.value, gradient_max_ = numbers.gradient_max;
    result_.evaluations = 1;
    memory_.begin();
  }
  std::optional<Termination> step(Iteration& row) override {
    LbfgsTrial trial = memory_.advance();
    if (!(trial.start_slope < 0) && trial.pairs > 0) {  // no descent: begin again with the gradient
      memory_.begin_again();
      trial = memory_.advance();
    }
    if (!(trial.start_slope < 0)) return Termination::no_descent;
    const double rounding = objective_.point().storage() == Storage::f32 ? 1e-6 : WolfeConditions().rounding;
    const LineResult line = memory_.search({0, value_, trial.start_slope}, rounding, trial);
    row.trials = line.trials;
    if (!line.lower && !line.ok) {
      memory_.begin_again();
      return trial.pairs == 0 ? std::optional(Termination::no_descent) : std::nullopt;
    }
    memory_.accept();
    value_ = trial.value, gradient_max_ = trial.gradient_max, point_norm_ = trial.point_norm;
    row.step_norm = trial.step_norm;
    return std::nullopt;
  }
  void finish() override {}

  LbfgsMemory memory_;
};

/// The value may rise; the best point is kept.
class FirstOrderMethod final : public Loop {
 public:
  FirstOrderMethod(Objective& objective, const Options& options)
      : Loop(objective, options), state_(objective, options.method), reader_(objective) {
    const Buffer point = objective.point();
    best_ = device().allocate(point.storage(), {point.elements()});
  }

 private:
  void start() override {
    const StepNumbers numbers = reader_.evaluate(state_.step());
    value_ = best_value_ = numbers.value, gradient_max_ = best_gradient_ = numbers.gradient_max;
    result_.evaluations = 1;
    device().copy(objective_.point(), best_);
  }
  std::optional<Termination> step(Iteration& row) override {
    const StepNumbers numbers = reader_.evaluate(state_.next(objective_, options_));
    device().copy(objective_.trial(), objective_.point());
    objective_.accepted();
    row.trials = 1;
    row.step_norm = numbers.step_norm;
    value_ = numbers.value, gradient_max_ = numbers.gradient_max, point_norm_ = numbers.point_norm;
    if (value_ < best_value_ && std::isfinite(gradient_max_)) {
      best_value_ = value_, best_gradient_ = gradient_max_;
      device().copy(objective_.point(), best_);
    }
    return std::nullopt;
  }
  void finish() override {
    if (!(best_value_ < value_) && std::isfinite(value_)) return;
    device().copy(best_, objective_.point());
    value_ = best_value_, gradient_max_ = best_gradient_;
  }

  FirstOrderState state_;
  StepReader reader_;
  Buffer best_;
  double best_value_ = std::numeric_limits<double>::infinity(), best_gradient_ = 0;
};

}  // namespace

std::string_view name(Method method) {
  const FirstOrderRow* row = first_order(method);
  return row ? row->name : "lbfgs";
}
std::string_view name(Termination termination) {
  switch (termination) {
    case Termination::value_tolerance: return "value_tolerance";
    case Termination::gradient_tolerance: return "gradient_tolerance";
    case Termination::step_tolerance: return "step_tolerance";
    case Termination::max_iterations: return "max_iterations";
    case Termination::stopped: return "stopped";
    case Termination::no_descent: return "no_descent";
    case Termination::failure: return "failure";
  }
  return "";
}

Result minimize(Objective& objective, const Options& options) {
  check_options(options);
  if (options.method == Method::lbfgs) return LbfgsMethod(objective, options).run();
  return FirstOrderMethod(objective, options).run();
}

}  // namespace lockstep::optimize
