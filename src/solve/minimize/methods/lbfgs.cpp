// L-BFGS: the host decides on steps by the numbers of one read; all else stays on the device.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/primitives.hpp"
#include "optimize/lbfgs/memory.hpp"
#include "solve/minimize/methods/evaluator_objective.hpp"
#include "solve/minimize/methods/vector_ops.hpp"
#include "solve/minimize/run.hpp"

namespace lockstep::solve {
namespace {

using optimize::LbfgsMemory;
using optimize::LbfgsTrial;
using optimize::LinePoint;
using optimize::LineResult;

constexpr int64_t kMostScaled = 10'000;  // unknowns up to which the diagonal of J^T J is worth its
                                         // Jacobian; Hessians of energies are not

class Lbfgs final : public Minimizer {
 public:
  explicit Lbfgs(Run& run) : run_(run) {}
  double gradient_max() const override { return gradient_max_; }
  int snapshot_interval() const override { return kSnapshotInterval; }

  double restore(const Snapshot& snapshot) override {
    run_.evaluate([&] {
      scaled_ = evaluator().tangent_size() <= kMostScaled && !run_.has_energies();
      objective_.emplace(evaluator());
      memory_ = std::make_unique<LbfgsMemory>(*objective_, run_.options().lbfgs_history, scaled_);
      if (run_.bounded()) direction_ = run_.vector(), masked_ = run_.vector();
      if (scaled_ && snapshot.vectors.empty()) find_diagonal();
      cost_ = evaluator().value_and_gradient();
      gradient_max_ = run_.gradient_max();
      memory_->restore(snapshot.scalars, snapshot.vectors);
    });
    return cost_;
  }
  void settle() override {
    if (open_) memory_->accept();
    open_ = false;
  }
  void save(Snapshot& snapshot) override { memory_->save(snapshot.scalars, snapshot.vectors); }

  std::optional<Termination> iterate(Iteration& row) override {
    std::optional<Termination> end;
    run_.evaluate([&] {
      settle();
      end = step(row);
    });
    return end;
  }

 private:
  Evaluator& evaluator() { return run_.evaluator(); }
  const Device& device() { return run_.device(); }

  std::optional<Termination> step(Iteration& row) {
    const double before = cost_;
    LinePoint start = find_direction();
    if (!(start.slope < 0) && trial_.pairs > 0) {  // no descent: begin again with the gradient
      memory_->begin_again();
      start = find_direction();
    }
    if (!(start.slope < 0)) return leave(row, before, Termination::no_descent);
    const LineResult line = run_.bounded() ? shorten(start) : search(start);
    row.linear_iterations = line.trials;
    row.damping = line.point.t;
    if (!line.lower && !line.ok) {
      const bool fresh = trial_.pairs == 0;
      if (scaled_ && !fresh) find_diagonal();
      memory_->begin_again();
      return leave(row, before, fresh ? std::optional(Termination::no_descent) : std::nullopt);
    }
    open_ = true;
    if (run_.bounded()) settle();  // which components the bounds hold depends on the state
    cost_ = trial_.value;
    gradient_max_ = run_.bounded() ? run_.gradient_max() : trial_.gradient_max;
    row.accepted = true;
    row.step_norm = trial_.step_norm;
    row.gain = start.slope != 0 ? (cost_ - before) / (line.point.t * start.slope) : 0;
    const Options& options = run_.options();
    std::optional<Termination> end;
    if (!std::isfinite(gradient_max_)) {
      run_.message = "the derivatives are not finite";
      end = Termination::failure;
    } else if (run_.stationary(gradient_max_, cost_)) {
      end = Termination::gradient_tolerance;
    } else if (std::abs(before - cost_) < options.function_tolerance * std::abs(before) ||
               run_.vanished(cost_)) {
      end = Termination::function_tolerance;
    } else if (row.step_norm <= options.parameter_tolerance * trial_.point_norm &&
               run_.small_in_each_set(memory_->step(), options.parameter_tolerance)) {
      end = Termination::parameter_tolerance;
    }
    return leave(row, before, end);
  }

  /// The scale that the first inverse Hessian has: that of a Gauss-Newton model without its other elements.
  void find_diagonal() {
    evaluator().linearize();
    device().copy(evaluator().diagonal(), memory_->diagonal());
  }

  /// The direction and, without bounds, the trial at its end. Gives the point of phi where the search starts.
  LinePoint find_direction() {
    if (!run_.bounded()) {
      trial_ = memory_->advance();
      return {0, cost_, trial_.start_slope};
    }
    const std::vector<uint8_t> held = run_.held();
    device().copy(evaluator().gradient(), masked_);
    clear(device(), held, masked_);
    trial_.pairs = memory_->find_direction(masked_);
    device().copy(memory_->step(), direction_);
    clear(device(), held, direction_);
    return {0, cost_, dot(device(), evaluator().gradient(), direction_)};
  }

  LineResult search(const LinePoint& start) {
    const bool narrow = evaluator().real() == Storage::f32 && run_.options().precision == Precision::f32;
    return memory_->search(start, narrow ? 1e-6 : optimize::WolfeConditions().rounding, trial_);
  }
  /// Between bounds: the step is cut at them and halved until the cost falls enough.
  LineResult shorten(const LinePoint& start) {
    constexpr int kTrials = 40;
    LineResult out;
    for (double t = 1; out.trials < kTrials; t *= 0.5) {
      const Buffer& step = memory_->step();
      device().copy(direction_, step);
      primitives::scale(device(), t, step);
      run_.project(step);
      const double predicted = dot(device(), evaluator().gradient(), step);
      out.point = {t, evaluator().try_step(step), start.slope};
      ++out.trials;
      if (predicted < 0 && out.point.value <= start.value + 1e-4 * predicted) {
        trial_ = memory_->try_step();
        out.ok = out.lower = true;
        return out;
      }
    }
    return out;
  }

  std::optional<Termination> leave(Iteration& row, double before, std::optional<Termination> end) const {
    row.cost = cost_;
    row.cost_change = before - cost_;
    row.gradient_max = gradient_max_;
    return end;
  }

  Run& run_;
  std::optional<EvaluatorObjective> objective_;
  std::unique_ptr<LbfgsMemory> memory_;
  LbfgsTrial trial_;           // the last one
  Buffer direction_, masked_;  // with bounds: the direction, the gradient without what is held
  bool scaled_ = false;        // by the diagonal of J^T J; not for large problems
  bool open_ = false;          // the last trial is accepted, and the evaluator does not know yet
  double cost_ = 0, gradient_max_ = 0;
};

}  // namespace

std::unique_ptr<Minimizer> make_lbfgs(Run& run) { return std::make_unique<Lbfgs>(run); }

}  // namespace lockstep::solve
