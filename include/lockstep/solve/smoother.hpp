// Incremental smoothing: blocks and terms are added to a problem while its minimiser is kept up to date.
//
//   solve::Smoother smoother(context, {.lag = 20});
//   const auto poses = smoother.add_set("poses", solve::se3());
//   const auto prior = smoother.add_kind(solve::se3_pose_prior_log(), {poses});
//   const auto between = smoother.add_kind(solve::se3_between_log(), {poses, poses});
//   for (...) {
//     smoother.append_blocks(poses, guess, time);
//     smoother.add_terms(between, indices, data);
//     smoother.update();
//     smoother.value(poses, newest);
//   }
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

struct SmootherOptions {
  /// Age at which blocks are removed, in the unit of their times. A prior keeps the information of their terms about
  /// other blocks. Infinite: no block is removed.
  double lag = std::numeric_limits<double>::infinity();
  /// A block is relinearised if a coordinate of its step exceeds this number times the unit of its set.
  double relinearize = 0.05;
  /// A change of a step is propagated to further blocks if it exceeds this number times the unit of the set.
  double propagate = 1e-5;
};

/// A term type of one smoother, over its sets.
struct FactorKind {
  int id = -1;
  uint64_t smoother = 0;  // 0: not checked
};

/// Counts of an update.
struct SmootherUpdate {
  int64_t relinearized = 0;  // relinearised blocks
  int64_t eliminated = 0;    // blocks in the part of the tree that was eliminated again
  int64_t cliques = 0;       // cliques of the whole tree
  int64_t left = 0;          // removed blocks
};

/// Minimises a growing problem by Gauss-Newton steps. The square-root factor is a tree of cliques (Kaess et al., iSAM2,
/// IJRR 31, 2012). An update relinearises blocks that moved and eliminates the cliques from the changed ones up to the
/// root again. Computed in f64 on the CPU, bit-identical for any number of threads. A call that throws leaves the smoother
/// unchanged; terms and blocks that update() rejects remain for the next update.
class Smoother {
 public:
  explicit Smoother(Context& context, const SmootherOptions& options = {});
  ~Smoother();
  Smoother(Smoother&&) noexcept;

  /// Adds an empty set of blocks. `unit`: unit of a coordinate, for the thresholds of the options.
  BlockSet add_set(std::string name, Manifold manifold, double unit = 1);
  /// Appends blocks with initial values to a set and returns the number of the first. Times must not decrease; NaN: the
  /// latest time so far.
  int64_t append_blocks(BlockSet set, std::span<const double> values,
                        double time = std::numeric_limits<double>::quiet_NaN());
  /// Assigns a later time to a block, such as a landmark that is seen again, so that it is removed later.
  void touch(BlockSet set, int64_t block, double time);
  /// Fixes a block at its value. Throws InputError for one that an update has moved.
  void fix(BlockSet set, int64_t block);

  /// Fixes these tangent coordinates of a block at its estimate and frees the others, as Problem::fix_coordinates().
  void fix_coordinates(BlockSet set, int64_t block, std::span<const int> coordinates);
  /// Sets bounds as Problem::bound(). If a block is at a bound when it is removed, the prior keeps it there; bounds of
  /// other removed blocks have no effect.
  void bound(BlockSet set, int64_t block, int component, double lower, double upper);

  /// Declares a term type over sets, one set per slot.
  FactorKind add_kind(const TermType& type, std::span<const BlockSet> sets);
  FactorKind add_kind(const TermType& type, std::initializer_list<BlockSet> sets) {
    return add_kind(type, std::span<const BlockSet>(sets.begin(), sets.size()));
  }
  FactorKind add_kind(const HostTerm& type, std::span<const BlockSet> sets);
  FactorKind add_kind(const HostTerm& type, std::initializer_list<BlockSet> sets) {
    return add_kind(type, std::span<const BlockSet>(sets.begin(), sets.size()));
  }
  /// Adds instances as Problem::add_terms().
  TermSet add_terms(FactorKind kind, std::span<const int32_t> indices, std::span<const double> data);
  /// Removes the instances. Information that is already in the prior remains.
  void erase(TermSet terms);
  /// Sets the weights w >= 0 of instances, one number or one per instance; an instance contributes w 1/2 rho(|r|^2).
  /// Instances in the prior keep their weight. Throws InputError if none is left outside of the prior.
  void weigh(TermSet terms, std::span<const double> weights);
  void weigh(TermSet terms, double weight) { weigh(terms, {&weight, 1}); }

  /// Processes the changes since the last update. Throws InputError for blocks that the terms do not determine.
  SmootherUpdate update();
  /// Processes the changes, relinearises all blocks and iterates until steps reach rounding level. Uses minimize() if
  /// Gauss-Newton steps do not reduce the cost. Returns the number of iterations. Throws as update().
  int solve(int max_iterations = 100);

  /// Estimates: linearisation points moved by the last steps.
  std::vector<double> value(BlockSet set, int64_t block) const;
  std::vector<double> values(BlockSet set) const;  // (count, ambient), by number
  std::vector<int64_t> block_numbers(BlockSet set) const;
  int64_t instance_count() const;  // including priors of removed blocks
  /// Cost at the estimates, including changes that update() has not processed yet.
  double cost() const;
  /// Joint covariance of the blocks' tangent coordinates at the linearisation points of the last update, row-major;
  /// zeros for coordinates that are fixed or at a bound.
  std::vector<double> covariance(std::span<const std::pair<BlockSet, int64_t>> blocks) const;
  /// The problem, for minimize() and other functions: the sets with their ids, blocks by number, a term set for each kind,
  /// and the priors.
  Problem problem() const;
  /// Bytes of host memory of tree, blocks and instances.
  int64_t bytes() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::solve
