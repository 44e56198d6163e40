// Directions along which a sparse semidefinite matrix is zero, and its Moore-Penrose inverse with their help.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <vector>

#include "solve/linear/cholesky/sparse_cholesky.hpp"

namespace lockstep::solve {

/// Rows and columns of the unknowns with mark != 0 become 0.
void clear_rows_and_columns(const BlockPattern& pattern, std::span<const double> mark,
                            std::span<double> values);

/// With N an orthonormal basis of the null space of A and G the inverse of A where as many coordinates are held as N
/// has columns (0 at those), the Moore-Penrose inverse of A is P G P, P = I - N N^T.
class FreeDirections {
 public:
  static constexpr int kMost = 15;
  /// By inverse iteration with A + diag(added) + 1e-12 diag(A), which `cholesky` factorises here. `added` is 1 at
  /// coordinates that are held already, whose rows and columns are 0. Throws InputError for more than kMost
  /// directions.
  FreeDirections(const BlockPattern& pattern, SparseCholesky& cholesky, std::span<const double> values,
                 std::span<const double> added);

  int64_t count() const { return basis_.cols(); }
  const Eigen::MatrixXd& basis() const { return basis_; }
  /// Those to be held: where the basis is largest.
  const std::vector<int64_t>& coordinates() const { return coordinates_; }
  bool holds(int64_t coordinate) const;
  /// Once `cholesky` has the factor with the coordinates held.
  void complete(const SparseCholesky& cholesky);
  /// (P G P - G) at (row, column), after complete().
  double correction(int64_t row, int64_t column) const;

 private:
  Eigen::MatrixXd basis_, solved_, middle_;  // N, G N, N^T G N
  std::vector<int64_t> coordinates_;
};

}  // namespace lockstep::solve
