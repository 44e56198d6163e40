// Marginalisation by the Schur complement: removes blocks from a problem and keeps the information of their terms about
// other blocks as a prior.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// A Gaussian prior of blocks in square-root form: 1/2 |R (x [-] from) + e|^2, where x [-] from is Manifold::minus of each
/// block.
struct LinearPrior {
  std::vector<std::pair<BlockSet, int64_t>> blocks;
  std::vector<double> from;    // values at which the terms were linearised, block after block
  int64_t rows = 0;            // rank of R, at most `columns`
  int64_t columns = 0;         // tangent coordinates of the blocks
  std::vector<double> root;    // R (rows, columns), row-major
  std::vector<double> offset;  // e (rows)
  double constant = 0;         // part of the cost of the terms that does not depend on these blocks
  int64_t undetermined = 0;  // number of directions of the removed blocks that their terms did not determine
  TermSet terms;             // the term of the prior in the problem

  /// Number of directions of the blocks, such as a gauge freedom, that the prior does not determine.
  int64_t free_directions() const { return columns - rows; }
};

struct MarginalizeOptions {
  /// Values at which terms are linearised instead of the current ones: first-estimate Jacobians, which preserve the
  /// unobservable directions of earlier priors (Huang, Mourikis and Roumeliotis 2010). They become the `from` of the
  /// prior.
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

/// Removes blocks from a problem. The terms of these blocks are linearised as in evaluate(), with losses and weights. The
/// other blocks of these terms receive the prior that results from minimising over the removed blocks (Dong-Si and
/// Mourikis 2011). The terms, including disabled ones, and the blocks are erased. Fixed blocks of the terms are taken as
/// known, even if they are freed later. Priors of earlier calls are ordinary terms. Computed in f64, bit-identical on the
/// CPU and CUDA in exact numerics. Throws InputError, and leaves the problem unchanged, for a block that is fixed,
/// bounded, absent or given twice, for energies, for fixed coordinates, and for blocks on manifolds without `minus`.
LinearPrior marginalize(Problem& problem, Context& context,
                        std::span<const std::pair<BlockSet, int64_t>> blocks,
                        const MarginalizeOptions& options = {});
LinearPrior marginalize(Problem& problem, Context& context, BlockSet set, std::span<const int64_t> blocks,
                        const MarginalizeOptions& options = {});

/// Adds a prior to a problem with its blocks. Throws InputError for sizes that do not fit, numbers that are not
/// finite, and blocks of another problem.
TermSet add_prior(Problem& problem, const LinearPrior& prior, const std::string& name = "prior");

}  // namespace lockstep::solve
