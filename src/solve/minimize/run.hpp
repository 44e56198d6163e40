// One minimisation: its evaluator, the device of the moment, stages, bounds, and what a method keeps.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/solve.hpp"
#include "solve/evaluate/evaluator.hpp"
#include "solve/linear/host_solver.hpp"
#include "solve/linear/linear_solver.hpp"
#include "solve/minimize/kept_tables.hpp"
#include "solve/minimize/methods/inner.hpp"
#include "solve/parts/parted_problem.hpp"

namespace lockstep::solve {

/// Seconds by Options::clock since it was made.
class Stopwatch {
 public:
  explicit Stopwatch(const Options& options) : clock_(options.clock), start_(now()) {}
  double seconds() const { return now() - start_; }

 private:
  double now() const {
    if (clock_) return clock_();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  std::function<double()> clock_;
  double start_;
};

/// The state that a minimisation continues from, after a device failed or in another process. Everything else follows.
struct Snapshot {
  std::vector<double> state;                 // the accepted point
  std::vector<double> scalars;               // of the method; empty at the start
  std::vector<std::vector<double>> vectors;  // of the method
};

/// Thrown through a stage that the context runs again on the CPU: the minimiser restores its last snapshot
/// there, so that the iterates are those of a run without the failure.
struct Restart {};

class Run {
 public:
  Run(Problem& problem, Context& context, const Options& options, Linear linear, bool on_cpu);

  const Options& options() const { return options_; }
  Linear linear() const { return linear_; }
  Evaluator& evaluator() { return *tables_->evaluator; }
  const Evaluator& evaluator() const { return *tables_->evaluator; }
  const Device& device() const { return evaluator().device(); }
  /// The solver of the method, which compiles ahead where it is new.
  LinearSolver& linear_solver();
  const parallel::Group& ranks() const { return ranks_; }

  /// Builds the evaluator at a point; on the CPU where the device cannot.
  void open(std::span<const double> state);
  /// Leaves the tables to the problem's next minimisation.
  void keep();
  /// Stages "solve.evaluate" and "solve.linear". After a device failed, the work throws Restart instead.
  void evaluate(const std::function<void()>& work) { stage("solve.evaluate", work); }
  void solve(const std::function<void()>& work) { stage("solve.linear", work); }

  /// A tangent vector of zeros.
  Buffer vector() const;
  /// The accepted point of the whole problem; collective where its parts are on several ranks.
  std::vector<double> state() const;
  /// Of tangent vectors of the whole problem.
  double dot(const Buffer& x, const Buffer& y) const;
  double norm(const Buffer& x) const;
  /// Whether the method keeps J for a direct solver on the host.
  bool solves_on_host() const { return uses() & kUseHost; }
  /// That, or it is L-BFGS, whose first scale is diag(J^T J).
  bool forms_jacobian() const { return solves_on_host() || options_.method == Method::lbfgs; }
  /// Whether a term is an energy.
  bool has_energies() const;
  /// Names the first instance whose residuals are not finite at the problem's values.
  std::string describe_not_finite() const;
  /// Names the first instance whose derivatives are not finite at the evaluator's state, after a linearisation.
  std::string describe_derivatives();

  /// Whether bounds or coordinates that are held constrain steps.
  bool bounded() const { return !lower_.empty(); }
  /// Coordinates that are held, or at a bound that the negative gradient leaves through; by tangent coordinate.
  std::vector<uint8_t> held();
  /// Shortens the components of a step that cross a bound.
  void project(const Buffer& step);
  /// Moves the evaluator's candidate, whose cost is given, by inner iterations where they lower the cost. Gives the cost.
  double improve(double cost);
  /// Largest |component| of the gradient; those that point out of the bounds do not count.
  double gradient_max();
  /// Whether the residuals, which can vanish, have fallen to the rounding error of those at the start.
  bool vanished(double cost) const;
  /// For methods without J: whether the gradient over the residuals' length (with energies the gradient alone) is at most
  /// `gradient_tolerance` of what it was at the start.
  bool stationary(double gradient_max, double cost) const;
  /// Whether a step's length is at most `tolerance` of the values of each set that moves, whose units are its own. The
  /// numbers of a set's only Euclidean block are each held to their own value. Copies state and step to the host.
  bool small_in_each_set(const Buffer& step, double tolerance);

  /// Seconds since the start, and of a stage.
  double seconds() const;
  /// Device, batches, kernels and transfers since open().
  void describe(Summary& summary) const;
  double evaluate_seconds = 0, linear_seconds = 0;
  int64_t linear_iterations = 0;
  double initial_cost = 0, initial_gradient = 0;  // the largest component
  std::string message;                            // why a method gave up

 private:
  /// Options::prepare for a point, which is the problem's values meanwhile.
  Evaluator::Prepare prepare();
  /// Throws GroupError where other ranks would continue without this one.
  void refuse_fallback() const;
  /// The method's requests to the evaluator.
  unsigned uses() const;
  std::string name_of(size_t batch, int64_t place) const;
  void stage(const char* name, const std::function<void()>& work);

  /// The problem of the evaluator.
  const Problem& evaluated() const { return parted_ ? parted_->own() : problem_; }

  Problem& problem_;
  Context& context_;
  const Options& options_;
  parallel::Group ranks_;
  Linear linear_;
  std::unique_ptr<PartedProblem> parted_;  // of several parts
  std::shared_ptr<KeptTables> tables_;
  const std::vector<int32_t> order_;        // of elimination, by tangent coordinate; empty: automatic
  std::unique_ptr<InnerIterations> inner_;  // where the options have them
  DeviceCounters before_;                   // at open()
  bool on_cpu_;                             // from the start, or since a device failed
  std::vector<double> lower_, upper_;       // by tangent coordinate; empty without any
  std::vector<uint8_t> held_;               // by tangent coordinate; empty where none is held on its own
  std::vector<int64_t> ambient_of_;         // the number that a bounded coordinate moves, else -1
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// A method. Its members hold what stays on the device between iterations.
class Minimizer {
 public:
  virtual ~Minimizer() = default;
  /// Takes over a snapshot. The evaluator is at its state; `scalars` are empty at the start. Returns the
  /// cost there.
  virtual double restore(const Snapshot& snapshot) = 0;
  /// One attempt at a step; fills the row but for its number and time. A value ends the minimisation.
  virtual std::optional<Termination> iterate(Iteration& row) = 0;
  /// Brings the evaluator to the accepted point, where a method leaves that to its next iteration. Within a
  /// stage; before the state is read or saved.
  virtual void settle() {}
  /// The state is filled in by the caller.
  virtual void save(Snapshot& snapshot) = 0;
  /// Largest gradient component at the accepted point.
  virtual double gradient_max() const = 0;
  /// Whether the accepted point is the best one; else `best` has it.
  virtual const std::vector<double>* best() const { return nullptr; }
  virtual double best_cost() const { return 0; }
  /// Iterations between snapshots; those in between are computed again after a failure.
  virtual int snapshot_interval() const { return 1; }
};

std::unique_ptr<Minimizer> make_levenberg_marquardt(Run& run);
std::unique_ptr<Minimizer> make_dogleg(Run& run);
/// Gauss-Newton and Newton: undamped steps, halved until the cost falls.
std::unique_ptr<Minimizer> make_newton(Run& run);
std::unique_ptr<Minimizer> make_lbfgs(Run& run);
std::unique_ptr<Minimizer> make_first_order(Run& run);

std::unique_ptr<LinearSolver> make_linear_solver(Linear linear, int max_iterations);
bool iterative(Linear linear);

}  // namespace lockstep::solve
