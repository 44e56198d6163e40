// Levenberg-Marquardt, dogleg, and undamped steps with halving.
//
// All judge a step s by its gain, the fall of the cost over the fall that the model predicts,
// -g.s - 1/2 s.(J^T J)s. Where the prediction is below the rounding error of the cost, a step that keeps the
// cost within that error counts as good: there only the gradient still distinguishes directions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "lockstep/primitives.hpp"
#include "solve/minimize/methods/vector_ops.hpp"
#include "solve/minimize/run.hpp"

namespace lockstep::solve {
namespace {

constexpr double kLeastGain = 1e-4;
constexpr double kRounding = 8 * std::numeric_limits<double>::epsilon();
constexpr int kRoundingSteps = 12;  // steps in a row whose prediction is below rounding
constexpr double kLargestDamping = 1e32;

/// Common to the trust region methods: linearisation, solver, forcing, tolerances.
class LeastSquares : public Minimizer {
 public:
  explicit LeastSquares(Run& run) : run_(run), solver_(run.linear_solver()) {}
  double gradient_max() const override { return gradient_max_; }

 protected:
  const Options& options() const { return run_.options(); }
  Evaluator& evaluator() { return run_.evaluator(); }
  const Device& device() { return run_.device(); }

  /// The part of a snapshot that the linear solver remembers; at the start nothing.
  void restore_solver(const Snapshot& snapshot) {
    if (auto* host = dynamic_cast<HostSolver*>(&solver_))
      host->remember(snapshot.vectors.empty() ? std::vector<double>() : snapshot.vectors[0]);
  }
  void save_solver(Snapshot& snapshot) const {
    if (const auto* host = dynamic_cast<const HostSolver*>(&solver_))
      snapshot.vectors.push_back(host->memory());
  }
  void linearize() {
    run_.evaluate([&] {
      if (!step_) step_ = run_.vector(), product_ = run_.vector();
      cost_ = evaluator().linearize();
      gradient_max_ = run_.gradient_max();
      state_norm_ = evaluator().state_norm();
      if (iterative(run_.linear())) gradient_norm_ = run_.norm(evaluator().gradient());
    });
    prepared_ = false;
  }
  /// (J^T J + lambda D) step = -g into `out`.
  LinearResult solve(double lambda, const Buffer& out) {
    LinearResult result;
    run_.solve([&] {
      if (!prepared_) {
        if (run_.bounded()) solver_.hold(run_.held());
        solver_.prepare(evaluator());
      }
      prepared_ = true;
      result = solver_.solve(evaluator(), lambda, forcing_, out);
    });
    run_.linear_iterations += result.iterations;
    return result;
  }
  /// Eisenstat and Walker's second choice, with their safeguard: the relative residual follows the fall of
  /// the gradient.
  void choose_forcing(double earlier_norm) {
    constexpr double kGamma = 0.9, kExponent = 1.618033988749895, kLeast = 1e-8;
    if (earlier_norm <= 0 || !std::isfinite(gradient_norm_)) return;
    double next = kGamma * std::pow(gradient_norm_ / earlier_norm, kExponent);
    const double safeguard = kGamma * std::pow(forcing_, kExponent);
    if (safeguard > 0.1) next = std::max(next, safeguard);
    forcing_ = std::clamp(next, kLeast, options().forcing);
  }

  struct Trial {
    double cost = 0, predicted = 0, slope = 0, length = 0;
    double decrement = 0;   // -g.s of the undamped step, as far as the method knows it
    bool moved_on = false;  // from the step, by inner iterations
  };
  Trial attempt(const Buffer& step) {
    Trial trial;
    run_.evaluate([&] {
      if (run_.bounded()) run_.project(step);
      trial.cost = evaluator().try_step(step);
      evaluator().multiply(step, product_);
      trial.slope = run_.dot(evaluator().gradient(), step);
      trial.predicted = -trial.slope - 0.5 * run_.dot(step, product_);
      trial.length = run_.norm(step);
    });
    // The model predicts the gain of inner iterations exactly: they leave the quality of the step to the step.
    const double cost = run_.improve(trial.cost);
    trial.moved_on = cost < trial.cost;
    if (trial.moved_on) trial.predicted += trial.cost - cost, trial.cost = cost;
    trial.decrement = -trial.slope;
    return trial;
  }
  double gain(const Trial& trial) const {
    if (!std::isfinite(trial.cost)) return -std::numeric_limits<double>::infinity();
    const double fall = cost_ - trial.cost, rounding = kRounding * cost_;
    if (trial.predicted <= rounding && std::abs(fall) <= rounding && trial.slope <= 0) return 1;
    return trial.predicted > 0 ? fall / trial.predicted : -1;
  }
  bool tiny(const Trial& trial) {
    const double tolerance = options().parameter_tolerance;
    return !trial.moved_on && trial.length <= tolerance * state_norm_ &&
           run_.small_in_each_set(step_, tolerance);
  }
  /// The cosine of the angle between the residuals and their tangent space (Bates and Watts 1981): what the step would
  /// take off them, over their length. It has no units.
  double offset(const Trial& trial) const {
    return std::sqrt(std::max(trial.decrement, 0.0) / (2 * std::abs(cost_)));
  }
  /// Takes the candidate. Returns a termination if that ends the minimisation.
  std::optional<Termination> take(const Trial& trial, Iteration& row) {
    const double before = cost_, earlier_norm = gradient_norm_, cosine = offset(trial);
    rounding_steps_ = std::abs(trial.predicted) <= kRounding * before ? rounding_steps_ + 1 : 0;
    run_.evaluate([&] { evaluator().accept(); });
    linearize();
    choose_forcing(earlier_norm);
    row.accepted = true;
    row.cost_change = before - cost_;
    if (!std::isfinite(gradient_max_) || !std::isfinite(cost_)) {
      run_.message = std::isfinite(cost_) ? run_.describe_derivatives() : "the cost is not finite";
      return Termination::failure;
    }
    if (gradient_max_ == 0 || (trial.decrement > 0 && cosine <= options().gradient_tolerance))
      return Termination::gradient_tolerance;
    if (std::abs(row.cost_change) < options().function_tolerance * std::abs(before))
      return Termination::function_tolerance;
    if (run_.vanished(cost_)) return Termination::function_tolerance;
    if (tiny(trial)) return Termination::parameter_tolerance;
    if (rounding_steps_ >= kRoundingSteps) return Termination::function_tolerance;
    return std::nullopt;
  }
  /// Whether a step that was refused ends the minimisation.
  std::optional<Termination> refuse(const Trial& trial) {
    if (tiny(trial)) return Termination::parameter_tolerance;
    if (std::isfinite(trial.cost) && std::abs(trial.predicted) <= kRounding * cost_ &&
        ++rounding_steps_ >= kRoundingSteps)
      return Termination::function_tolerance;
    return std::nullopt;
  }
  void fill(Iteration& row, const Trial& trial, double gain) const {
    row.cost = cost_;
    row.gradient_max = gradient_max_;
    row.step_norm = trial.length;
    row.gain = gain;
  }

  Run& run_;
  LinearSolver& solver_;
  Buffer step_, product_;
  double cost_ = 0, gradient_max_ = 0, gradient_norm_ = 0, state_norm_ = 0, forcing_ = 0;
  double rounding_steps_ = 0;
  bool prepared_ = false;
};

class LevenbergMarquardt final : public LeastSquares {
 public:
  using LeastSquares::LeastSquares;

  double restore(const Snapshot& snapshot) override {
    lambda_ = options().initial_damping, growth_ = 2, forcing_ = options().forcing;
    if (snapshot.scalars.size() == 4)
      lambda_ = snapshot.scalars[0], growth_ = snapshot.scalars[1], forcing_ = snapshot.scalars[2],
      rounding_steps_ = snapshot.scalars[3];
    restore_solver(snapshot);
    linearize();
    return cost_;
  }
  void save(Snapshot& snapshot) override {
    snapshot.scalars = {lambda_, growth_, forcing_, rounding_steps_};
    save_solver(snapshot);
  }

  std::optional<Termination> iterate(Iteration& row) override {
    row.damping = lambda_;
    const LinearResult linear = solve(lambda_, step_);
    row.linear_iterations = linear.iterations;
    if (!linear.ok) {
      fill(row, {}, 0);
      run_.message = linear.message;
      return damp() ? std::nullopt : std::optional(Termination::failure);
    }
    Trial trial = attempt(step_);
    trial.decrement *= 1 + lambda_;
    const double gained = gain(trial);
    std::optional<Termination> end;
    if (gained > kLeastGain) {
      // Nielsen's update, smooth between a third for a perfect prediction and growth for a poor one; a good
      // prediction also earns the whole third, which shortens the way along curved valleys.
      constexpr double kGood = 0.7;
      const double poor = 2 * gained - 1;
      lambda_ *= gained > kGood ? 1.0 / 3 : std::clamp(1 - poor * poor * poor, 1.0 / 3, 2.0);
      lambda_ = std::max(lambda_, least_damping());
      growth_ = 2;
      end = take(trial, row);
    } else {
      end = refuse(trial);
      if (!damp() && !end) end = Termination::no_descent;
    }
    fill(row, trial, gained);
    return end;
  }

 private:
  /// Conjugate gradients in single precision cannot tell less damping from rounding: along directions that
  /// only the damping holds, such as a gauge, the curvature loses its sign.
  double least_damping() const {
    const bool narrow = options().precision != Precision::f64 && iterative(run_.linear()) &&
                        options().damping == Damping::diagonal;
    return narrow ? 8 * double(std::numeric_limits<float>::epsilon()) : 1e-32;
  }
  bool damp() {
    lambda_ *= growth_, growth_ *= 2;
    return lambda_ <= kLargestDamping;
  }
  double lambda_ = 0, growth_ = 2;
};

/// Powell's path from the steepest descent to the Gauss-Newton step, in coordinates scaled by sqrt(diag J^T
/// J).
class Dogleg final : public LeastSquares {
 public:
  using LeastSquares::LeastSquares;

  double restore(const Snapshot& snapshot) override {
    radius_ = options().initial_radius, forcing_ = options().forcing;
    if (snapshot.scalars.size() == 3)
      radius_ = snapshot.scalars[0], forcing_ = snapshot.scalars[1], rounding_steps_ = snapshot.scalars[2];
    run_.evaluate([&] {
      newton_ = run_.vector(), cauchy_ = run_.vector(), scaled_ = run_.vector(), scale_ = run_.vector();
      if (!snapshot.vectors.empty()) to_device(device(), snapshot.vectors.back(), scale_);
    });
    restore_solver(snapshot);
    linearize();
    // In sqrt(diag J^T J) a step is measured as the residuals are.
    if (snapshot.scalars.empty() && options().damping == Damping::diagonal)
      radius_ *= std::sqrt(2 * std::abs(cost_));
    ready_ = false;
    return cost_;
  }
  void save(Snapshot& snapshot) override {
    snapshot.scalars = {radius_, forcing_, rounding_steps_};
    save_solver(snapshot);
    snapshot.vectors.push_back(to_host(device(), scale_));
  }

  std::optional<Termination> iterate(Iteration& row) override {
    row.damping = radius_;
    if (!ready_) {
      const LinearResult linear = prepare_path();
      row.linear_iterations = linear.iterations;
      if (!linear.ok) {
        fill(row, {}, 0);
        run_.message = linear.message;
        return Termination::failure;
      }
      ready_ = true;
    }
    double length = 0;  // of the step, scaled
    run_.evaluate([&] { length = walk(); });
    Trial trial = attempt(step_);
    trial.decrement = newton_decrement_;
    const double gained = gain(trial);
    std::optional<Termination> end;
    if (gained > 0.75) radius_ = std::max(radius_, 3 * length);
    if (gained < 0.25) radius_ = 0.5 * std::min(radius_, length);
    if (gained > kLeastGain) {
      end = take(trial, row);
      ready_ = false;
    } else {
      end = refuse(trial);
      if (radius_ < std::numeric_limits<double>::min() && !end) end = Termination::no_descent;
    }
    fill(row, trial, gained);
    return end;
  }

 private:
  double scaled_dot(const Buffer& a, const Buffer& b) {
    scale_by(device(), scale_, a, scaled_);
    return dot(device(), scaled_, b);
  }
  LinearResult prepare_path() {
    LinearResult linear = solve(0, newton_);
    // Where J has not full rank, the least damping that can be solved with.
    for (double lambda = 1e-14; !linear.ok && lambda < 1; lambda *= 100) linear = solve(lambda, newton_);
    if (!linear.ok) return linear;
    run_.evaluate([&] {
      // Few unknowns: the largest diagonal so far, for the reason that the QR solver gives.
      if (options().damping == Damping::identity)
        to_device(device(), std::vector<double>(size_t(evaluator().tangent_size()), 1.0), scale_);
      else if (run_.linear() == Linear::dense_qr)
        raise(device(), evaluator().diagonal(), scale_);
      else
        device().copy(evaluator().diagonal(), scale_);
      divide_by(device(), scale_, evaluator().gradient(), cauchy_);
      if (run_.bounded()) clear(device(), run_.held(), cauchy_);  // as the Gauss-Newton step
      evaluator().multiply(cauchy_, product_);
      const double slope = dot(device(), evaluator().gradient(), cauchy_);
      const double curvature = dot(device(), cauchy_, product_);
      const double length = curvature > 0 ? slope / curvature : 0;
      primitives::scale(device(), -length, cauchy_);
      cauchy_length_ = std::sqrt(scaled_dot(cauchy_, cauchy_));
      newton_length_ = std::sqrt(scaled_dot(newton_, newton_));
      newton_decrement_ = -dot(device(), evaluator().gradient(), newton_);
      mixed_ = scaled_dot(cauchy_, newton_);
    });
    return linear;
  }
  /// step_ = the point of the path at the radius; gives its scaled length.
  double walk() {
    if (newton_length_ <= radius_) {
      device().copy(newton_, step_);
      return newton_length_;
    }
    device().copy(cauchy_, step_);
    if (cauchy_length_ >= radius_) {
      primitives::scale(device(), radius_ / cauchy_length_, step_);
      return radius_;
    }
    // |c + t (n - c)| = radius
    const double a = newton_length_ * newton_length_ - 2 * mixed_ + cauchy_length_ * cauchy_length_;
    const double b = mixed_ - cauchy_length_ * cauchy_length_;
    const double c = radius_ * radius_ - cauchy_length_ * cauchy_length_;
    const double root = std::sqrt(std::max(0.0, b * b + a * c));
    const double t = std::clamp(b > 0 ? c / (b + root) : (root - b) / a, 0.0, 1.0);
    primitives::axpby(device(), t, newton_, 1 - t, step_);
    return radius_;
  }

  Buffer newton_, cauchy_, scaled_;
  Buffer scale_;  // squares of the scales
  double radius_ = 0, cauchy_length_ = 0, newton_length_ = 0, newton_decrement_ = 0, mixed_ = 0;
  bool ready_ = false;
};

class Newton final : public LeastSquares {
 public:
  using LeastSquares::LeastSquares;

  double restore(const Snapshot& snapshot) override {
    forcing_ = options().forcing;
    if (snapshot.scalars.size() == 2) forcing_ = snapshot.scalars[0], rounding_steps_ = snapshot.scalars[1];
    run_.evaluate([&] { whole_ = run_.vector(); });
    restore_solver(snapshot);
    linearize();
    return cost_;
  }
  void save(Snapshot& snapshot) override {
    snapshot.scalars = {forcing_, rounding_steps_};
    save_solver(snapshot);
  }

  std::optional<Termination> iterate(Iteration& row) override {
    // A projected Hessian may be singular along a direction of descent: damped where halving finds nothing.
    static constexpr double kDampings[] = {0, 1e-8, 1e-6, 1e-4, 1e-2, 1, 1e2, 1e4};
    const bool newton = options().method == Method::newton;
    Trial trial;
    double gained = 0;
    for (const double lambda : std::span(kDampings).first(newton ? std::size(kDampings) : 1)) {
      const LinearResult linear = solve(lambda, step_);
      row.linear_iterations += linear.iterations;
      row.damping = lambda;
      if (!linear.ok) {
        run_.message = linear.message;
        if (newton) continue;
        fill(row, {}, 0);
        return Termination::failure;
      }
      run_.message.clear();
      std::optional<Termination> end;
      const bool done = halve(newton ? 12 : 50, trial, gained, row, end);
      if (!done) continue;
      fill(row, trial, gained);
      return end;
    }
    fill(row, trial, gained);
    return run_.message.empty() ? Termination::no_descent : Termination::failure;
  }

 private:
  /// Whether a step along step_ was taken, or the minimisation ends.
  bool halve(int halvings, Trial& trial, double& gained, Iteration& row, std::optional<Termination>& end) {
    constexpr double kDescent = 1e-4;
    run_.evaluate([&] { device().copy(step_, whole_); });
    for (int k = 0; k < halvings; ++k) {
      if (k > 0)  // the whole step again: bounds may have cut the last one
        run_.evaluate([&] {
          primitives::scale(device(), 0.5, whole_);
          device().copy(whole_, step_);
        });
      trial = attempt(step_);
      gained = gain(trial);
      if (gained == 1 ||
          (std::isfinite(trial.cost) && trial.slope < 0 && cost_ - trial.cost > -kDescent * trial.slope)) {
        end = take(trial, row);
        return true;
      }
      if ((end = refuse(trial))) return true;
    }
    return false;
  }

  Buffer whole_;
};

}  // namespace

std::unique_ptr<Minimizer> make_levenberg_marquardt(Run& run) {
  return std::make_unique<LevenbergMarquardt>(run);
}
std::unique_ptr<Minimizer> make_dogleg(Run& run) { return std::make_unique<Dogleg>(run); }
std::unique_ptr<Minimizer> make_newton(Run& run) { return std::make_unique<Newton>(run); }

}  // namespace lockstep::solve
