// Sparse Cholesky factorisation of a symmetric matrix of blocks: approximate minimum degree on the blocks,
// supernodes, fronts along the elimination tree. The same bits for every number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "solve/linear/cholesky/front_tree.hpp"

namespace lockstep::solve {

class SparseCholesky {
 public:
  /// Orders and analyses; the pattern is kept. `groups` as of FrontTree.
  explicit SparseCholesky(const BlockPattern& pattern, std::span<const int32_t> groups = {});
  ~SparseCholesky();
  SparseCholesky(SparseCholesky&&) noexcept;

  /// Factorises the matrix of `values` (by entries) plus diag(`added`). False where a pivot is not a positive
  /// finite number.
  bool factorise(std::span<const double> values, std::span<const double> added);
  /// Least pivot of the last factorisation over the diagonal element it came from: near the rounding error
  /// where the matrix is singular.
  double least_pivot() const;
  /// x = A^-1 x.
  void solve(std::span<double> x) const;
  /// Entries of A^-1 at the places of the pattern's, laid out as the values: the factor's columns from the last
  /// to the first (Takahashi), front by front.
  std::vector<double> inverse_entries() const;
  /// Numbers in the factor, and operations of a factorisation.
  int64_t factor_elements() const;
  double flops() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::solve
