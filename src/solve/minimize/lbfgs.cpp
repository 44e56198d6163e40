// L-BFGS: direction by the two loops over the last steps, all vectors on the device; the host sees the
// numbers that decide on the step.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lockstep/primitives.hpp"
#include "solve/minimize/line_search.hpp"
#include "solve/minimize/run.hpp"
#include "solve/minimize/vector_ops.hpp"

namespace lockstep::solve {
namespace {

constexpr int kInterval = 50;
constexpr int64_t kMostScaled = 10'000;  // unknowns up to which the diagonal of J^T J is worth its
                                         // Jacobian; Hessians of energies are not

class Lbfgs final : public Minimizer {
 public:
  explicit Lbfgs(Run& run) : run_(run) {}
  double gradient_max() const override { return gradient_max_; }
  int snapshot_interval() const override { return kInterval; }

  double restore(const Snapshot& snapshot) override {
    run_.evaluate([&] {
      direction_ = run_.vector(), step_ = run_.vector(), earlier_ = run_.vector();
      product_ = scalar();
      if (evaluator().tangent_size() <= kMostScaled && !run_.has_energies()) {
        diagonal_ = run_.vector();
        if (snapshot.vectors.size() % 2 == 1)
          to_device(device(), snapshot.vectors.back(), diagonal_);
        else
          find_diagonal();
      }
      cost_ = run_.evaluator().value_and_gradient();
      gradient_max_ = run_.gradient_max();
      state_norm_ = run_.evaluator().state_norm();
      for (size_t k = 0; k + 1 < snapshot.vectors.size(); k += 2) {
        Pair pair = make_pair();
        to_device(device(), snapshot.vectors[k], pair.s);
        to_device(device(), snapshot.vectors[k + 1], pair.y);
        measure(pair);
        pairs_.push_back(std::move(pair));
      }
    });
    return cost_;
  }
  void save(Snapshot& snapshot) override {
    snapshot.scalars = {double(pairs_.size())};
    for (const Pair& pair : pairs_) {
      snapshot.vectors.push_back(to_host(device(), pair.s));
      snapshot.vectors.push_back(to_host(device(), pair.y));
    }
    if (diagonal_) snapshot.vectors.push_back(to_host(device(), diagonal_));
  }

  std::optional<Termination> iterate(Iteration& row) override {
    LinePoint start;
    double norm_of_direction = 0;
    run_.solve([&] {
      for (;;) {
        find_direction();
        start = {0, cost_, dot(device(), evaluator().gradient(), direction_)};
        if (start.slope < 0 || pairs_.empty()) break;
        pairs_.clear();  // no descent: begin anew with the gradient
      }
      if (pairs_.empty() && !diagonal_) norm_of_direction = norm(device(), direction_);
      device().copy(evaluator().gradient(), earlier_);
    });
    const double before = cost_;
    if (!(start.slope < 0)) return leave(row, before, Termination::no_descent);
    const double first = pairs_.empty() && !diagonal_ ? std::min(1.0, 1 / norm_of_direction) : 1;
    const LineResult line = run_.bounded() ? shorten(start, first) : search(start, first);
    row.linear_iterations = line.trials;
    row.damping = line.point.t;
    if (!line.lower && !line.ok) {
      // The gradient belongs to the last trial; the accepted point has another.
      run_.evaluate([&] { evaluator().value_and_gradient(); });
      const bool fresh = pairs_.empty();
      pairs_.clear();
      if (diagonal_ && !fresh)
        run_.evaluate([&] {
          find_diagonal();
          evaluator().value_and_gradient();
        });
      return leave(row, before, fresh ? std::optional(Termination::no_descent) : std::nullopt);
    }
    double length = 0;
    run_.evaluate([&] {
      evaluator().accept();
      cost_ = line.point.value;
      keep_pair();
      length = norm(device(), step_);
      gradient_max_ = run_.gradient_max();
      state_norm_ = evaluator().state_norm();
    });
    row.accepted = true;
    row.step_norm = length;
    row.gain = start.slope != 0 ? (cost_ - before) / (line.point.t * start.slope) : 0;
    const Options& options = run_.options();
    std::optional<Termination> end;
    if (!std::isfinite(gradient_max_)) {
      run_.message = "the derivatives are not finite";
      end = Termination::failure;
    } else if (gradient_max_ <= options.gradient_tolerance) {
      end = Termination::gradient_tolerance;
    } else if (std::abs(before - cost_) < options.function_tolerance * std::abs(before)) {
      end = Termination::function_tolerance;
    } else if (length <= options.parameter_tolerance * (state_norm_ + options.parameter_tolerance)) {
      end = Termination::parameter_tolerance;
    }
    return leave(row, before, end);
  }

 private:
  struct Pair {
    Buffer s, y, inverse, alpha;  // step, change of the gradient, 1 / s.y, number of the first loop
    double sy = 0, yy = 0;        // s.y and y.D^-1 y
  };

  Evaluator& evaluator() { return run_.evaluator(); }
  const Device& device() { return run_.device(); }
  Buffer scalar() { return device().allocate(evaluator().real(), {1}); }
  Pair make_pair() { return {run_.vector(), run_.vector(), scalar(), scalar(), 0, 0}; }
  void measure(Pair& pair) {
    pair.sy = dot(device(), pair.s, pair.y);
    if (diagonal_) divide_by(device(), diagonal_, pair.y, direction_);
    pair.yy = dot(device(), pair.y, diagonal_ ? direction_ : pair.y);
    const double inverse = 1 / pair.sy;
    to_device(device(), std::span(&inverse, 1), pair.inverse);
  }

  /// The scale that the first inverse Hessian has: that of a Gauss-Newton model without its other elements.
  void find_diagonal() {
    evaluator().linearize();
    device().copy(evaluator().diagonal(), diagonal_);
  }
  void find_direction() {
    std::vector<uint8_t> held;
    device().copy(evaluator().gradient(), direction_);
    if (run_.bounded()) held = run_.held(), clear(held);
    for (size_t k = pairs_.size(); k-- > 0;) {
      const Pair& pair = pairs_[k];
      primitives::dot(device(), pair.s, direction_, product_);
      lbfgs_descend(device(), pair.inverse, product_, pair.y, pair.alpha, direction_);
    }
    if (diagonal_) {
      divide_by(device(), diagonal_, direction_, step_);
      device().copy(step_, direction_);
    }
    primitives::scale(device(), pairs_.empty() ? -1 : -pairs_.back().sy / pairs_.back().yy, direction_);
    for (const Pair& pair : pairs_) {
      primitives::dot(device(), pair.y, direction_, product_);
      lbfgs_ascend(device(), pair.inverse, product_, pair.alpha, pair.s, direction_);
    }
    if (run_.bounded()) clear(held);
  }
  void clear(const std::vector<uint8_t>& held) {
    std::vector<double> d = to_host(device(), direction_);
    for (size_t k = 0; k < d.size(); ++k)
      if (held[k]) d[k] = 0;
    to_device(device(), d, direction_);
  }

  /// Cost and gradient at the candidate; the state stays.
  double try_with_gradient(double t) {
    device().copy(direction_, step_);
    primitives::scale(device(), t, step_);
    return evaluator().try_gradient(step_);
  }
  LineResult search(const LinePoint& start, double first) {
    WolfeConditions conditions;
    if (evaluator().real() == Storage::f32 && run_.options().precision == Precision::f32)
      conditions.rounding = 1e-6;
    const auto phi = [&](double t) {
      LinePoint point;
      run_.evaluate([&] {
        point.value = try_with_gradient(t);
        point.slope = dot(device(), evaluator().gradient(), direction_);
      });
      return point;
    };
    return strong_wolfe(phi, start, first, conditions);
  }
  /// Between bounds: the step is cut at them and halved until the cost falls enough.
  LineResult shorten(const LinePoint& start, double first) {
    constexpr int kTrials = 40;
    LineResult out;
    for (double t = first; out.trials < kTrials; t *= 0.5) {
      double predicted = 0;
      run_.evaluate([&] {
        device().copy(direction_, step_);
        primitives::scale(device(), t, step_);
        run_.project(step_);
        predicted = dot(device(), evaluator().gradient(), step_);
        out.point = {t, evaluator().try_step(step_), start.slope};
      });
      ++out.trials;
      if (predicted < 0 && out.point.value <= start.value + 1e-4 * predicted) {
        run_.evaluate([&] { evaluator().try_gradient(step_); });
        out.ok = out.lower = true;
        return out;
      }
    }
    return out;
  }

  void keep_pair() {
    constexpr double kCurvature = std::numeric_limits<double>::epsilon();
    Pair pair;
    if (int(pairs_.size()) >= run_.options().lbfgs_history) {
      pair = std::move(pairs_.front());
      pairs_.erase(pairs_.begin());
    } else {
      pair = make_pair();
    }
    device().copy(step_, pair.s);
    device().copy(evaluator().gradient(), pair.y);
    primitives::axpy(device(), -1, earlier_, pair.y);
    measure(pair);
    // Pairs without curvature would make the next direction one of ascent.
    if (pair.sy > 0 && pair.sy > kCurvature * pair.yy) pairs_.push_back(std::move(pair));
  }

  std::optional<Termination> leave(Iteration& row, double before, std::optional<Termination> end) const {
    row.cost = cost_;
    row.cost_change = before - cost_;
    row.gradient_max = gradient_max_;
    return end;
  }

  Run& run_;
  std::vector<Pair> pairs_;  // oldest first
  Buffer direction_, step_, earlier_, product_;
  Buffer diagonal_;  // of J^T J; empty for large problems
  double cost_ = 0, gradient_max_ = 0, state_norm_ = 0;
};

}  // namespace

std::unique_ptr<Minimizer> make_lbfgs(Run& run) { return std::make_unique<Lbfgs>(run); }

}  // namespace lockstep::solve
