// Incremental smoothing: a problem to which blocks and terms are added while its minimiser is kept up to date.
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
  /// Age at which blocks are removed; a prior keeps the information of their terms about the others. Infinite:
  /// none leave.
  double lag = std::numeric_limits<double>::infinity();
  /// A block is relinearised if a coordinate of its step exceeds this many units of its set.
  double relinearize = 0.05;
  /// Changes of steps above this many units are propagated to further blocks.
  double propagate = 1e-5;
};

/// A term type of one smoother, over its sets.
struct FactorKind {
  int id = -1;
  uint64_t smoother = 0;  // 0: not checked
};

/// Counts of an update.
struct SmootherUpdate {
  int64_t relinearized = 0;  // blocks
  int64_t eliminated = 0;    // blocks of the part of the tree that was re-eliminated
  int64_t cliques = 0;       // of the whole tree
  int64_t left = 0;          // blocks that were removed
};

/// The minimiser of a growing problem by Gauss-Newton steps. The square-root factor is a tree of cliques (Kaess et
/// al., iSAM2, IJRR 31, 2012): an update relinearises blocks that moved, and eliminates the cliques from the changed
/// ones up to the root. In f64 on the CPU, bit-identical for any number of threads. A call that throws leaves the
/// smoother unchanged; terms and blocks that update() rejects remain for the next one.
class Smoother {
 public:
  explicit Smoother(Context& context, const SmootherOptions& options = {});
  ~Smoother();
  Smoother(Smoother&&) noexcept;

  /// An empty set of blocks. `unit`: unit of a coordinate, for the thresholds of the options.
  BlockSet add_set(std::string name, Manifold manifold, double unit = 1);
  /// Appends blocks with initial values to a set; returns the number of the first. Times must not decrease; NaN: the
  /// latest so far.
  int64_t append_blocks(BlockSet set, std::span<const double> values,
                        double time = std::numeric_limits<double>::quiet_NaN());
  /// Assigns a later time to a block, so that it stays longer, such as a landmark that is seen again.
  void touch(BlockSet set, int64_t block, double time);
  /// Fixes a block at its value. Throws InputError for one that an update has moved.
  void fix(BlockSet set, int64_t block);

  /// Fixes tangent coordinates of a block at its estimate, or frees them, as Problem::fix_coordinates().
  void fix_coordinates(BlockSet set, int64_t block, std::span<const int> coordinates);
  /// Bounds as in Problem::bound(); infinities: none. If a block is at a bound when it is removed, the prior keeps it
  /// there; bounds of other removed blocks have no effect.
  void bound(BlockSet set, int64_t block, int component, double lower, double upper);

  FactorKind add_kind(const TermType& type, std::span<const BlockSet> sets);
  FactorKind add_kind(const TermType& type, std::initializer_list<BlockSet> sets) {
    return add_kind(type, std::span<const BlockSet>(sets.begin(), sets.size()));
  }
  FactorKind add_kind(const HostTerm& type, std::span<const BlockSet> sets);
  FactorKind add_kind(const HostTerm& type, std::initializer_list<BlockSet> sets) {
    return add_kind(type, std::span<const BlockSet>(sets.begin(), sets.size()));
  }
  /// Instances as in Problem::add_terms().
  TermSet add_terms(FactorKind kind, std::span<const int32_t> indices, std::span<const double> data);
  /// Removes the instances. Information already in the prior remains.
  void erase(TermSet terms);
  /// Weights of instances: each contributes w 1/2 rho(|r|^2), w >= 0; one number, or one per instance. Instances in
  /// the prior keep their weight. Throws InputError if none is left.
  void weigh(TermSet terms, std::span<const double> weights);
  void weigh(TermSet terms, double weight) { weigh(terms, {&weight, 1}); }

  /// Processes what was added. Throws InputError for blocks that the terms do not determine.
  SmootherUpdate update();
  /// Processes what was added, relinearises all blocks and iterates until steps reach rounding level; uses minimize()
  /// if Gauss-Newton steps do not reduce the cost. Returns the number of iterations.
  int solve(int max_iterations = 100);

  /// Estimates: linearisation points moved by the last steps.
  std::vector<double> value(BlockSet set, int64_t block) const;
  std::vector<double> values(BlockSet set) const;  // (count, ambient), by number
  std::vector<int64_t> block_numbers(BlockSet set) const;
  int64_t instance_count() const;  // including priors of removed blocks
  /// Cost at the estimates, including what is waiting for update().
  double cost() const;
  /// Joint covariance of the blocks' tangent coordinates at the linearisation points of the last update, row-major;
  /// zeros for coordinates that are fixed or at a bound.
  std::vector<double> covariance(std::span<const std::pair<BlockSet, int64_t>> blocks) const;
  /// The same problem for minimize() and other functions: sets with their ids, blocks by number, a term set of each
  /// kind, priors.
  Problem problem() const;
  /// Memory of tree, blocks and instances.
  int64_t bytes() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::solve
