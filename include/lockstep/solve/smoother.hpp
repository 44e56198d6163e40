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
  /// Blocks whose time is further back than this leave, and a prior keeps what their terms said of the others. Infinite:
  /// none leave.
  double lag = std::numeric_limits<double>::infinity();
  /// A block is linearised anew where a coordinate of its step is larger than this many units of its set.
  double relinearize = 0.05;
  /// Steps are passed on to blocks further away where they change by more than this many units.
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
  int64_t eliminated = 0;    // blocks of the part of the tree that was eliminated again
  int64_t cliques = 0;       // of the whole tree
  int64_t left = 0;          // blocks that left the window
};

/// The minimiser of a growing problem by Gauss-Newton steps. The square-root factor is kept as a tree of cliques (Kaess et
/// al., iSAM2, IJRR 31, 2012): an update linearises blocks that moved, and eliminates the cliques from what changed up to
/// the root. In f64 on the CPU, with the same bits for any number of threads. Every call that throws leaves the smoother
/// as it was; terms and blocks that update() could not take stay for the next one.
class Smoother {
 public:
  explicit Smoother(Context& context, const SmootherOptions& options = {});
  ~Smoother();
  Smoother(Smoother&&) noexcept;

  /// A set without blocks. `unit`: the size of a coordinate that the options' thresholds are multiples of.
  BlockSet add_set(std::string name, Manifold manifold, double unit = 1);
  /// Blocks at the end of a set, with guesses of their values; gives the number of the first. Times do not decrease; NaN:
  /// the latest so far.
  int64_t append_blocks(BlockSet set, std::span<const double> values,
                        double time = std::numeric_limits<double>::quiet_NaN());
  /// Gives a block a later time, so that it stays longer, such as a landmark that is seen again.
  void touch(BlockSet set, int64_t block, double time);
  /// Holds a block at its value. Throws InputError for one that an update moved.
  void fix(BlockSet set, int64_t block);

  /// Holds tangent coordinates of a block at its estimate, or frees them, as Problem::fix_coordinates() does.
  void fix_coordinates(BlockSet set, int64_t block, std::span<const int> coordinates);
  /// Bounds as Problem::bound() takes them; infinities: none. A block that leaves while it is at a bound is held there by
  /// the prior, others leave as if they had none.
  void bound(BlockSet set, int64_t block, int component, double lower, double upper);

  FactorKind add_kind(const TermType& type, std::span<const BlockSet> sets);
  FactorKind add_kind(const TermType& type, std::initializer_list<BlockSet> sets) {
    return add_kind(type, std::span<const BlockSet>(sets.begin(), sets.size()));
  }
  FactorKind add_kind(const HostTerm& type, std::span<const BlockSet> sets);
  FactorKind add_kind(const HostTerm& type, std::initializer_list<BlockSet> sets) {
    return add_kind(type, std::span<const BlockSet>(sets.begin(), sets.size()));
  }
  /// Instances as Problem::add_terms() takes them.
  TermSet add_terms(FactorKind kind, std::span<const int32_t> indices, std::span<const double> data);
  /// Takes the instances out. Those whose blocks left are in the prior and stay there.
  void erase(TermSet terms);
  /// Each instance counts w 1/2 rho(|r|^2) from now on, w >= 0; one number, or one by instance. Those whose blocks left keep
  /// the weight that they had. Throws InputError where none is left.
  void weigh(TermSet terms, std::span<const double> weights);
  void weigh(TermSet terms, double weight) { weigh(terms, {&weight, 1}); }

  /// Takes in what was added. Throws InputError for blocks that the terms do not determine.
  SmootherUpdate update();
  /// Takes in what was added and iterates with all blocks linearised anew until no step is left but rounding; by minimize()
  /// where Gauss-Newton steps do not lower the cost. Gives the number of iterations.
  int solve(int max_iterations = 100);

  /// Estimates: linearisation points moved by the last steps.
  std::vector<double> value(BlockSet set, int64_t block) const;
  std::vector<double> values(BlockSet set) const;  // (count, ambient), by number
  std::vector<int64_t> block_numbers(BlockSet set) const;
  int64_t instance_count() const;  // priors of blocks that left included
  /// Cost at the estimates, with what is waiting for update().
  double cost() const;
  /// Joint covariance of blocks' tangent coordinates at the linearisation points of the last update, row-major; zeros for
  /// coordinates that are held or at a bound.
  std::vector<double> covariance(std::span<const std::pair<BlockSet, int64_t>> blocks) const;
  /// The same problem for minimize() and others: sets with the ids that they have here, blocks by number, a term set of each
  /// kind, priors.
  Problem problem() const;
  /// Of tree, blocks and instances.
  int64_t bytes() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::solve
