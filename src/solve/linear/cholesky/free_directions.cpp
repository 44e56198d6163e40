#include "solve/linear/cholesky/free_directions.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "lockstep/error.hpp"

namespace lockstep::solve {

namespace {

constexpr double kShift = 1e-12, kNull = 1e-12;  // of a matrix with ones on its diagonal
constexpr int kIterations = 4;  // each takes other directions down by their eigenvalue over kShift

/// Calls entry(row, column, value) for each number of the lower blocks.
template <class F>
void each_entry(const BlockPattern& pattern, F entry) {
  size_t at = 0;
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int64_t r0 = pattern.first[size_t(pattern.rows[e])], c0 = pattern.first[size_t(pattern.columns[e])];
    for (int64_t c = 0; c < pattern.width(pattern.columns[e]); ++c)
      for (int64_t r = 0; r < pattern.width(pattern.rows[e]); ++r, ++at) entry(r0 + r, c0 + c, at);
  }
}

/// S A S x with S = diag(A)^-1/2, A symmetric by its lower blocks.
Eigen::MatrixXd scaled_product(const BlockPattern& pattern, std::span<const double> values,
                               const Eigen::VectorXd& scale, const Eigen::MatrixXd& x) {
  const Eigen::MatrixXd sx = scale.asDiagonal() * x;
  Eigen::MatrixXd y = Eigen::MatrixXd::Zero(x.rows(), x.cols());
  size_t first = 0;
  for (size_t e = 0; e < pattern.rows.size(); ++e) {
    const int64_t h = pattern.width(pattern.rows[e]), w = pattern.width(pattern.columns[e]);
    const int64_t r0 = pattern.first[size_t(pattern.rows[e])], c0 = pattern.first[size_t(pattern.columns[e])];
    const Eigen::Map<const Eigen::MatrixXd> block(values.data() + first, h, w);
    y.middleRows(r0, h) += block * sx.middleRows(c0, w);
    if (r0 != c0) y.middleRows(c0, w) += block.transpose() * sx.middleRows(r0, h);
    first += size_t(h * w);
  }
  return scale.asDiagonal() * y;
}

Eigen::MatrixXd orthonormal(const Eigen::MatrixXd& x) {
  return Eigen::HouseholderQR<Eigen::MatrixXd>(x).householderQ() *
         Eigen::MatrixXd::Identity(x.rows(), x.cols());
}

void solve_columns(const SparseCholesky& cholesky, Eigen::MatrixXd& x) {
  for (Eigen::Index c = 0; c < x.cols(); ++c) cholesky.solve({x.col(c).data(), size_t(x.rows())});
}

}  // namespace

void clear_rows_and_columns(const BlockPattern& pattern, std::span<const double> mark,
                            std::span<double> values) {
  each_entry(pattern, [&](int64_t row, int64_t column, size_t at) {
    if (mark[size_t(row)] != 0 || mark[size_t(column)] != 0) values[at] = 0;
  });
}

FreeDirections::FreeDirections(const BlockPattern& pattern, SparseCholesky& cholesky,
                               std::span<const double> values, std::span<const double> added) {
  const int64_t n = pattern.unknowns();
  Eigen::VectorXd diagonal(n);
  for (int64_t k = 0; k < n; ++k) diagonal[k] = added[size_t(k)];
  each_entry(pattern, [&](int64_t row, int64_t column, size_t at) {
    if (row == column) diagonal[row] += values[at];
  });
  const Eigen::VectorXd scale = diagonal.cwiseSqrt().cwiseInverse();
  std::vector<double> shift(added.begin(), added.end());
  for (int64_t k = 0; k < n; ++k) shift[size_t(k)] += kShift * diagonal[k];
  if (!cholesky.factorise(values, shift))
    throw InputError("J^T J is not positive semidefinite", "solve covariance",
                     "values and derivatives that are finite");

  Eigen::MatrixXd x(n, std::min<int64_t>(kMost + 1, n));
  std::mt19937_64 random(1);
  for (double& v : x.reshaped()) v = double(random() >> 11) * 0x1p-52 - 1;
  for (int k = 0; k < kIterations; ++k) {  // x = S^-1 (A + shift)^-1 S^-1 x
    x = scale.cwiseInverse().asDiagonal() * x;
    solve_columns(cholesky, x);
    x = scale.cwiseInverse().asDiagonal() * x;
    x = orthonormal(x);
  }
  Eigen::MatrixXd held = x;  // A and what is added, times x
  for (int64_t k = 0; k < n; ++k) held.row(k) *= added[size_t(k)] * scale[k] * scale[k];
  const Eigen::MatrixXd ritz = x.transpose() * (scaled_product(pattern, values, scale, x) + held);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(0.5 * (ritz + ritz.transpose()));
  const int64_t null = (eigen.eigenvalues().array() <= kNull).count();
  if (null > kMost)
    throw InputError("more than 15 directions that may move freely", "solve covariance",
                     "fix() for some, or CovarianceOptions::dense_complement");
  if (null > 0)
    basis_ = orthonormal(scale.asDiagonal() * (x * eigen.eigenvectors().leftCols(null)));
  else
    basis_.resize(n, 0);
  if (null == 0) return;
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> pivots(basis_.transpose());
  for (int64_t k = 0; k < null; ++k) coordinates_.push_back(pivots.colsPermutation().indices()[k]);
  std::sort(coordinates_.begin(), coordinates_.end());
}

bool FreeDirections::holds(int64_t coordinate) const {
  return std::binary_search(coordinates_.begin(), coordinates_.end(), coordinate);
}

void FreeDirections::complete(const SparseCholesky& cholesky) {
  solved_ = basis_;
  for (const int64_t k : coordinates_) solved_.row(k).setZero();
  solve_columns(cholesky, solved_);
  for (const int64_t k : coordinates_) solved_.row(k).setZero();
  middle_ = basis_.transpose() * solved_;
}

double FreeDirections::correction(int64_t row, int64_t column) const {
  if (count() == 0) return 0;
  const auto a = basis_.row(row), b = basis_.row(column);
  return a.dot(middle_ * b.transpose()) - a.dot(solved_.row(column)) - solved_.row(row).dot(b);
}

}  // namespace lockstep::solve
