// State of a Smoother.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/solve/marginalize.hpp"
#include "lockstep/solve/smoother.hpp"
#include "solve/smooth/clique_tree.hpp"
#include "solve/smooth/factor_group.hpp"

namespace lockstep::solve {

struct Smoother::State {
  State(Context& context, const SmootherOptions& options) : context(context), options(options) {}

  /// Blocks by their numbers, ascending.
  struct Set {
    std::shared_ptr<const TracedManifold> manifold;
    std::string name;
    double unit = 1;
    int64_t added = 0;
    std::vector<int64_t> numbers;
    std::vector<int32_t> variables;
  };
  struct Bound {
    int component = 0, coordinate = 0;
    double lower = 0, upper = 0;
    int at = 0;  // -1, 1: the coordinate is held at the lower or the upper one
  };
  struct Variable {
    int32_t set = -1;  // -1: unused
    int64_t number = 0;
    double time = 0;
    bool fixed = false;
    std::vector<int32_t> factors;
    std::vector<HeldStep> held;  // coordinates that fix_coordinates() holds
    std::vector<Bound> bounds;
    bool holds(int32_t coordinate) const {
      return std::ranges::find(held, coordinate, &HeldStep::coordinate) != held.end();
    }
  };

  Context& context;
  SmootherOptions options;
  Problem registry;  // of the sets, without blocks: it gives and checks handles
  std::vector<Set> sets;
  std::vector<Variable> variables;
  std::vector<BlockValues> points;  // by variable: where it is linearised
  std::vector<int32_t> free_variables;
  std::vector<std::unique_ptr<FactorGroup>> groups;
  std::vector<SmoothFactor> factors;
  std::vector<int32_t> free_factors;
  std::map<int, std::vector<int32_t>> terms;  // factors by term number and instance; -1: taken out
  std::vector<int32_t> bounded;               // variables with bounds
  int next_term = 0;
  int64_t instances = 0;
  double latest = -std::numeric_limits<double>::infinity();
  CliqueTree tree;

  // For the next update.
  std::vector<int32_t> new_factors, new_variables, touched, moved;
  std::vector<int32_t> last;  // variables of the newest terms, which are eliminated last

  Set& set(BlockSet handle, const std::string& where);
  /// The variable of a block. Throws InputError where there is none, or no more.
  int32_t variable(BlockSet handle, int64_t block, const std::string& where) const;
  FactorGroup& group(FactorKind kind, const std::string& where) const;
  std::string text(int32_t variable) const;
  FactorKind add_kind(FactorGroup::Type type, std::span<const BlockSet> sets, TermForm form);
  int32_t add_factor(SmoothFactor&& factor);
  /// Of a term set by instance, -1: taken out; empty: all were. Throws InputError for sets of others.
  std::vector<int32_t> term_factors(TermSet handle, const std::string& where) const;
  /// Takes a factor out of its variables, term and memory.
  void drop_factor(int32_t factor);
  void drop_variable(int32_t variable);
  void join_variables(SmoothFactor& factor) const;

  /// The clique of a variable is eliminated again by the next update.
  void touch_clique(int32_t variable);
  /// Steps of the coordinates that are held, or at a bound.
  std::vector<HeldStep> held_steps(int32_t variable) const;
  /// The step, no further than to the bounds; and numbers within them, regardless of rounding.
  std::vector<double> limited_step(int32_t variable) const;
  void limit_values(int32_t variable, BlockValues& values) const;
  /// Where a bound's `at` has to change for the last steps to be the minimum.
  struct Exchange {
    int32_t variable;
    size_t bound;
    int at;
  };
  /// Block principal pivoting (Judice and Pires, Comput. Oper. Res. 21, 1994): all exchanges while their number falls or
  /// fell lately, else the last one alone, which ends for positive definite problems.
  struct ExchangeRule {
    size_t fewest = std::numeric_limits<size_t>::max();
    int tries = 0;
  };
  std::vector<Exchange> exchanges(ExchangeRule& rule) const;
  int wrong_side(int32_t variable, const Bound& bound) const;

  /// The values of variables moved by their steps, within their bounds.
  std::vector<BlockValues> moved_values(std::span<const int32_t> which) const;
  /// Quadratics of factors at the linearisation points.
  void linearise(const Device& device, std::span<const int32_t> which);
  void linearise_prior(SmoothFactor& factor) const;
  /// x [-] from of a prior's variables and, where requested, its slopes to steps at x: by variable (width, width).
  std::vector<double> prior_offset(const SmoothFactor& factor, const std::vector<BlockValues>& at,
                                   std::vector<std::vector<double>>* slopes) const;
  double longest_step() const;
  double linear_cost() const;  // at the points, as of the last update
  double total_cost() const;

  SmootherUpdate update(bool all);
  int solve(int max_iterations);
  /// Sets points to a batch minimiser's.
  void minimise_batch();
  /// Of a prior's factor, for blocks of another problem by variable.
  LinearPrior square_root(const SmoothFactor& factor,
                          std::span<const std::pair<BlockSet, int64_t>> blocks) const;
  Problem problem() const;
};

}  // namespace lockstep::solve
