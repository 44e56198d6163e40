#include "solve/sketch/solve_sketch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "core/numbers/split_mix.hpp"
#include "solve/minimize/choose.hpp"
#include "solve/minimize/run.hpp"

namespace lockstep::solve::sketch {
namespace {

constexpr int kAttempts = 3;     // starts in addition to the first
constexpr double kNudge = 0.05;  // their distance, in sizes
constexpr size_t kMostConflicts = 8;
constexpr double kLeastRadius = 1e-6;  // in sizes

// A sketch that is not fully constrained has many solutions. The target is the one nearest to its current state.
// Damping in proportion to diag(J^T J) would instead prefer long steps along coordinates that hardly matter.
// The damping is therefore the same for all coordinates.

// -1 … 1.
double nudge(uint64_t counter) { return double(split_mix64(counter * kSplitMixStep) >> 11) * 0x1p-52 - 1; }

class Solver {
 public:
  Solver(const Sketch& sketch, const ConstraintSystem& system, Context& context, const Options& options)
      : sketch_(sketch), system_(system), context_(context), options_(options) {}

  // Minimises the chosen constraints from `at`, which becomes the solution.
  Summary minimize(const std::vector<uint8_t>& active, Coordinates& at, const Options& options) const {
    Problem problem;
    const BlockSet points = problem.add_blocks("points", euclidean(2), at.points);
    BlockSet radii;
    if (!at.radii.empty()) radii = problem.add_blocks("radii", euclidean(1), at.radii);
    std::vector<uint8_t> point_moves(sketch_.points.size(), 0), radius_moves(sketch_.circles.size(), 0);
    struct Terms {
      std::vector<int32_t> indices;
      std::vector<double> data;
    };
    std::map<std::pair<ConstraintKind, bool>, Terms> terms;
    for (const ConstraintInstance& instance : system_.instances()) {
      if (!active[size_t(instance.constraint)]) continue;
      Terms& t = terms[{instance.kind, instance.at_end}];
      t.indices.insert(t.indices.end(), instance.points.begin(), instance.points.end());
      t.indices.insert(t.indices.end(), instance.circles.begin(), instance.circles.end());
      t.data.insert(t.data.end(), instance.data.begin(), instance.data.end());
      for (const int32_t p : instance.points) point_moves[size_t(p)] = !sketch_.points[size_t(p)].pinned;
      for (const int32_t c : instance.circles) radius_moves[size_t(c)] = 1;
    }
    for (const auto& [form, t] : terms) {
      const TermType type = constraint_term(form.first, form.second);
      std::vector<BlockSet> sets;
      for (const int slot : type.slots) sets.push_back(slot == 2 ? points : radii);
      problem.add_terms(type, sets, t.indices, t.data);
    }
    for (size_t p = 0; p < point_moves.size(); ++p)
      if (!point_moves[p]) problem.fix(points, int64_t(p));
    for (size_t c = 0; c < radius_moves.size(); ++c) {
      if (!radius_moves[c]) problem.fix(radii, int64_t(c));
      problem.bound(radii, int64_t(c), 0, kLeastRadius, std::numeric_limits<double>::infinity());
    }
    if (problem.variable_count() == 0) {
      Summary still;
      still.termination = Termination::gradient_tolerance;
      still.message = "nothing may move";
      still.initial_cost = still.final_cost = cost(active, at);
      still.residuals = problem.residual_count();
      still.method = options.method;
      still.linear_given = still.linear_used = options.linear;
      still.precision = options.precision;
      still.device = context_.device().info().name;
      return still;
    }
    Options inner = options;
    if (options.time_limit > 0) {  // of the sketch's minimisations together
      constexpr double kNothing = 1e-9;
      inner.time_limit = std::max(options.time_limit - watch_.seconds(), kNothing);
    }
    inner.damping = Damping::identity;  // see above
    Summary summary = solve::minimize(problem, context_, inner);
    const auto p = problem.values(points);
    at.points.assign(p.begin(), p.end());
    if (!at.radii.empty()) {
      const auto r = problem.values(radii);
      at.radii.assign(r.begin(), r.end());
    }
    return summary;
  }

  double cost(const std::vector<uint8_t>& active, const Coordinates& at) const {
    const std::vector<double> residuals = system_.residuals(at);
    double sum = 0;
    for (size_t row = 0; row < residuals.size(); ++row)
      if (active[size_t(system_.row_constraint()[row])]) sum += 0.5 * residuals[row] * residuals[row];
    return sum;
  }

  // Largest |residual| by constraint.
  std::vector<double> misfits(const Coordinates& at) const {
    std::vector<double> largest(sketch_.constraints.size(), 0.0);
    const std::vector<double> residuals = system_.residuals(at);
    for (size_t row = 0; row < residuals.size(); ++row) {
      double& m = largest[size_t(system_.row_constraint()[row])];
      m = std::max(m, std::isfinite(residuals[row]) ? std::abs(residuals[row])
                                                    : std::numeric_limits<double>::infinity());
    }
    return largest;
  }
  bool satisfied(const std::vector<uint8_t>& active, const Coordinates& at) const {
    const std::vector<double> m = misfits(at);
    for (size_t c = 0; c < m.size(); ++c)
      if (active[c] && !(m[c] <= satisfied_below(options_.precision))) return false;
    return true;
  }

  // The minimisation that shows that the chosen constraints can hold together, if there is one; `at` is a start
  // and becomes the solution.
  std::optional<Summary> satisfy(const std::vector<uint8_t>& active, Coordinates& at) const {
    Options quiet = options_;
    quiet.callback = nullptr;
    quiet.checkpoint.clear();
    quiet.max_iterations = std::max(quiet.max_iterations, 200);
    for (int attempt = 0; attempt <= kAttempts; ++attempt) {
      Coordinates trial = at;
      if (attempt > 0) {
        const auto first = uint64_t(attempt) << 32;
        for (size_t k = 0; k < trial.points.size(); ++k)
          if (!sketch_.points[k / 2].pinned) trial.points[k] += kNudge * attempt * nudge(first + k);
      }
      Summary summary = minimize(active, trial, quiet);
      if (satisfied(active, trial)) {
        at = std::move(trial);
        return summary;
      }
      if (summary.termination == Termination::time_limit) break;
    }
    return std::nullopt;
  }

  // Constraints of `active`, which cannot hold together, none of which can be left out. `at` is where their
  // sum of squares is least: there the misfits balance each other, so those without a misfit take no part.
  std::vector<int32_t> conflict(const std::vector<uint8_t>& active, const Coordinates& start,
                                const Coordinates& at) const {
    std::vector<uint8_t> chosen = active;
    const std::vector<double> m = misfits(at);
    double largest = 0;
    for (size_t c = 0; c < m.size(); ++c)
      if (active[c]) largest = std::max(largest, m[c]);
    for (size_t c = 0; c < m.size(); ++c) chosen[c] = active[c] && m[c] > 1e-6 * largest;
    Coordinates trial = start;
    if (satisfy(chosen, trial)) chosen = active;
    for (size_t c = chosen.size(); c-- > 0;) {
      if (!chosen[c]) continue;
      chosen[c] = 0;
      Coordinates without = start;
      if (satisfy(chosen, without)) chosen[c] = 1;
    }
    std::vector<int32_t> set;
    for (size_t c = 0; c < chosen.size(); ++c)
      if (chosen[c]) set.push_back(int32_t(c));
    return set;
  }

 private:
  const Sketch& sketch_;
  const ConstraintSystem& system_;
  Context& context_;
  const Options& options_;
  Stopwatch watch_{options_};
};

}  // namespace

double satisfied_below(Precision precision) { return precision == Precision::f32 ? 1e-4 : 1e-8; }

SketchResult solve_sketch(const Sketch& sketch, Context& context, const Options& options) {
  if (is_first_order(options.method))
    throw schema_of<Options>().error(
        {OptionError::Kind::invalid, "method", fmt::format("'{}'", name(options.method)),
         "lm, gn, dogleg, newton or lbfgs: constraints hold to rounding or not at all", ""});
  if (options.damping != Damping::diagonal)
    throw schema_of<Options>().error(
        {OptionError::Kind::invalid, "damping", "'identity'", "diag, which is that of a sketch already", ""});
  const ConstraintSystem system(sketch);
  const Solver solver(sketch, system, context, options);
  SketchResult result;
  result.sketch = sketch;
  result.size = system.size();
  std::vector<uint8_t> active(sketch.constraints.size(), 1);
  const Coordinates start = coordinates_of(sketch, system.size());
  Coordinates at = start;
  result.summary = solver.minimize(active, at, options);
  // A start far away has made the tolerances coarse: once more from here.
  if (std::ranges::any_of(sketch.constraints, &gives_length) &&
      (converged(result.summary.termination) || result.summary.termination == Termination::max_iterations)) {
    place(result.sketch, at, system.size());
    if (sketch_size(result.sketch) < 0.1 * system.size())
      return solve_sketch(Sketch(result.sketch), context, options);
    result.sketch = sketch;
  }
  result.satisfied = solver.satisfied(active, at);
  const Termination end = result.summary.termination;
  if (!result.satisfied && (converged(end) || end == Termination::no_descent)) {
    Coordinates other = start;
    if (std::optional<Summary> summary = solver.satisfy(active, other)) {
      at = std::move(other);
      result.summary = std::move(*summary);
      result.satisfied = true;
    } else {
      // One conflict after the other: without one constraint of each, the rest may still contradict itself.
      Coordinates least = at;
      while (result.conflicts.size() < kMostConflicts) {
        std::vector<int32_t> set = solver.conflict(active, start, least);
        if (set.empty()) break;
        active[size_t(set.back())] = 0;
        result.conflicts.push_back(std::move(set));
        least = start;
        if (solver.satisfy(active, least)) break;
        Options quiet = options;
        quiet.callback = nullptr;
        quiet.checkpoint.clear();
        solver.minimize(active, least, quiet);
      }
    }
  }
  result.residuals = solver.misfits(at);
  result.freedom = analyse_freedom(sketch, system, at);
  place(result.sketch, at, system.size());
  return result;
}

}  // namespace lockstep::solve::sketch
