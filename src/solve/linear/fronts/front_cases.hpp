// Matrices that cases and tests of the factorisation by fronts share, and a plain dense solution of them.
#pragma once

#include "lockstep/verify.hpp"
#include "solve/linear/cholesky/front_tree.hpp"

namespace lockstep::solve {

/// A symmetric matrix by blocks; `added` is its damping and `right` a right-hand side.
struct BlockMatrix {
  BlockPattern pattern;
  std::vector<double> values, added, right;
  /// (unknowns, unknowns), with the damping.
  std::vector<double> dense() const;
};

/// Random blocks at the pairs (row > column) and positive definite by dominance; `widths`: of the blocks.
BlockMatrix random_matrix(const std::vector<int>& widths,
                          const std::vector<std::pair<int32_t, int32_t>>& pairs, uint64_t seed);
/// Pairs of a triangulated grid.
std::vector<std::pair<int32_t, int32_t>> grid_pairs(int64_t rows, int64_t columns);
/// A^-1 b by Cholesky-Crout on the dense matrix, in long double.
std::vector<double> dense_solution(const BlockMatrix& matrix);

/// Cases solve.cholesky.fronts and solve.cholesky.fronts.f64: one factorisation with its substitutions.
void add_front_cases(CaseRegistry& registry);

}  // namespace lockstep::solve
