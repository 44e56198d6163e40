// Blocks that leave a problem while what their terms said of the others stays: marginalisation by the Schur complement.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// A Gaussian prior of blocks in square-root form: 1/2 |R (x [-] from) + e|^2, x [-] from by Manifold::minus, block after
/// block.
struct LinearPrior {
  std::vector<std::pair<BlockSet, int64_t>> blocks;
  std::vector<double> from;  // (ambient numbers of the blocks): where terms were linearised
  int64_t rows = 0,
          columns = 0;       // columns: tangent coordinates of the blocks; rows: their rank, at most columns
  std::vector<double> root;  // R, (rows, columns), row-major
  std::vector<double> offset;  // e, (rows)
  double constant = 0;         // cost of the terms that no value of these blocks takes away
  int64_t undetermined = 0;    // directions of the blocks that left which their terms did not hold
  TermSet terms;               // the term that stands for it in the problem

  /// Directions of the blocks, such as a gauge, that the prior does not hold.
  int64_t free_directions() const { return columns - rows; }
};

struct MarginalizeOptions {
  /// Values at which terms are linearised, in the place of the problem's: first-estimate Jacobians, which keep what earlier
  /// priors did not know unknown (Huang, Mourikis and Roumeliotis 2010). The prior's `from` is then these.
  struct Estimate {
    BlockSet set;
    int64_t block = 0;
    std::vector<double> values;
  };
  std::vector<Estimate> first_estimates;
  std::string name = "prior";
  /// Singular values below this share of the largest count as none.
  double rank_tolerance = 1e-12;
};

/// Takes blocks out of a problem. The terms that have one of them are linearised, as evaluate() does, with losses and
/// weights; their blocks that stay get the prior that minimising over the ones that leave gives (Dong-Si and Mourikis
/// 2011). Terms and blocks are erased, disabled terms too. A block that is fixed counts as known, also if it is freed
/// later. Priors of earlier calls are terms like others. In f64, the numbers have the same bits on the CPU and on CUDA in
/// exact numerics. Throws InputError, and leaves the problem as it is, for a block that is fixed, bounded, absent or given
/// twice, for energies, for coordinates that fix_coordinates() holds, and for blocks on manifolds without `minus`.
LinearPrior marginalize(Problem& problem, Context& context,
                        std::span<const std::pair<BlockSet, int64_t>> blocks,
                        const MarginalizeOptions& options = {});
LinearPrior marginalize(Problem& problem, Context& context, BlockSet set, std::span<const int64_t> blocks,
                        const MarginalizeOptions& options = {});

/// Puts a prior into a problem that has its blocks. Throws InputError for sizes that do not fit, numbers that are not
/// finite, and blocks of another problem.
TermSet add_prior(Problem& problem, const LinearPrior& prior, const std::string& name = "prior");

}  // namespace lockstep::solve
