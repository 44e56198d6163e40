// Marginalisation by the Schur complement: removes blocks and keeps the information of their terms about other
// blocks.
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
  double constant = 0;         // cost of the terms that no value of these blocks can reduce
  int64_t undetermined = 0;    // directions of the removed blocks that their terms did not determine
  TermSet terms;               // the term of the prior in the problem

  /// Directions of the blocks, such as a gauge, that the prior does not determine.
  int64_t free_directions() const { return columns - rows; }
};

struct MarginalizeOptions {
  /// Values at which terms are linearised, instead of those of the problem: first-estimate Jacobians, which preserve
  /// unobservable directions of earlier priors (Huang, Mourikis and Roumeliotis 2010). The prior's `from` is then
  /// these.
  struct Estimate {
    BlockSet set;
    int64_t block = 0;
    std::vector<double> values;
  };
  std::vector<Estimate> first_estimates;
  std::string name = "prior";
  /// Singular values below this share of the largest are treated as zero.
  double rank_tolerance = 1e-12;
};

/// Removes blocks from a problem. The terms of these blocks are linearised, as in evaluate(), with losses and
/// weights; their remaining blocks receive the prior that results from minimising over the removed ones (Dong-Si and
/// Mourikis 2011). Terms and blocks are erased, including disabled terms. A fixed block counts as known, even if it
/// is freed later. Priors of earlier calls are ordinary terms. In f64, bit-identical on the CPU and CUDA in exact
/// numerics. Throws InputError, and leaves the problem unchanged, for a block that is fixed, bounded, absent or given
/// twice, for energies, for fixed coordinates, and for blocks on manifolds without `minus`.
LinearPrior marginalize(Problem& problem, Context& context,
                        std::span<const std::pair<BlockSet, int64_t>> blocks,
                        const MarginalizeOptions& options = {});
LinearPrior marginalize(Problem& problem, Context& context, BlockSet set, std::span<const int64_t> blocks,
                        const MarginalizeOptions& options = {});

/// Adds a prior to a problem with its blocks. Throws InputError for sizes that do not fit, numbers that are not
/// finite, and blocks of another problem.
TermSet add_prior(Problem& problem, const LinearPrior& prior, const std::string& name = "prior");

}  // namespace lockstep::solve
