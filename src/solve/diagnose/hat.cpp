#include "solve/diagnose/hat.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "lockstep/error.hpp"
#include "solve/model/rank.hpp"

namespace lockstep::solve {
namespace {

using Eigen::Index;

constexpr double kMostFlops = 5e11;   // of a sparse factorisation, of which the inverse takes three
constexpr int64_t kMostFactor = 2e8;  // numbers

Hat empty_hat(std::span<const InstanceRows> instances, int64_t rows) {
  Hat hat;
  int64_t numbers = 0;
  for (const InstanceRows& i : instances) hat.begin.push_back(numbers), numbers += i.count * i.count;
  hat.blocks.assign(size_t(numbers), 0), hat.fitted.assign(size_t(rows), 0);
  return hat;
}

/// Orthonormal columns that span those of a matrix.
Eigen::MatrixXd range_of(Eigen::MatrixXd j) {
  for (Index c = 0; c < j.cols(); ++c)
    if (const double length = j.col(c).norm(); length > 0) j.col(c) /= length;
  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr;
  qr.setThreshold(kRank);
  qr.compute(j);
  Eigen::MatrixXd q = Eigen::MatrixXd::Identity(j.rows(), qr.rank());
  q.applyOnTheLeft(qr.householderQ());
  return q;
}

/// Entries of a symmetric matrix of blocks, by unknowns.
class Entries {
 public:
  Entries(const BlockPattern& pattern, std::vector<double> values)
      : pattern_(pattern),
        values_(std::move(values)),
        offsets_(pattern.offsets()),
        first_(size_t(pattern.blocks()) + 1, 0) {
    for (const int32_t column : pattern.columns) ++first_[size_t(column) + 1];
    for (size_t b = 0; b + 1 < first_.size(); ++b) first_[b + 1] += first_[b];
  }
  double operator()(int64_t row_block, int64_t row, int64_t column_block, int64_t column) const {
    if (row_block < column_block) std::swap(row_block, column_block), std::swap(row, column);
    const auto begin = pattern_.rows.begin() + first_[size_t(column_block)];
    const auto end = pattern_.rows.begin() + first_[size_t(column_block) + 1];
    const auto entry = size_t(std::lower_bound(begin, end, int32_t(row_block)) - pattern_.rows.begin());
    return values_[size_t(offsets_[entry] + column * pattern_.width(row_block) + row)];
  }

 private:
  const BlockPattern& pattern_;
  std::vector<double> values_;
  std::vector<int64_t> offsets_, first_;  // first entry of each block column
};

}  // namespace

Hat dense_hat(const Evaluation& at, std::span<const InstanceRows> instances, const Pieces& pieces,
              const Columns& columns) {
  const SparseRows& j = at.jacobian;
  Hat hat = empty_hat(instances, j.rows);
  std::vector<size_t> of_row(size_t(j.rows));
  for (size_t i = 0; i < instances.size(); ++i)
    std::fill_n(of_row.begin() + instances[i].first, instances[i].count, i);
  const bool dense = each_dense_piece(j, pieces, columns, [&](DensePiece piece) {
    if (piece.rows.empty()) return;
    const Eigen::MatrixXd q = range_of(std::move(piece.matrix));
    hat.rank += q.cols();
    Eigen::VectorXd r(q.rows());
    for (Index a = 0; a < r.size(); ++a) r[a] = at.residuals[size_t(piece.rows[size_t(a)])];
    const Eigen::VectorXd fitted = q * (q.transpose() * r);
    for (Index a = 0; a < r.size(); ++a) {
      const int64_t row = piece.rows[size_t(a)];
      const size_t instance = of_row[size_t(row)];
      const InstanceRows& own = instances[instance];
      hat.fitted[size_t(row)] = fitted[a];
      for (Index b = a; b < r.size() && piece.rows[size_t(b)] < own.first + own.count; ++b) {
        const int64_t m = row - own.first, n = piece.rows[size_t(b)] - own.first;
        double* const block = hat.blocks.data() + hat.begin[instance];
        block[m * own.count + n] = block[n * own.count + m] = q.row(a).dot(q.row(b));
      }
    }
  });
  return dense ? hat : Hat{};
}

Hat sparse_hat(const Evaluation& at, std::span<const InstanceRows> instances, const Columns& columns,
               HeldNormal& normal) {
  if (normal.flops() > kMostFlops || normal.factor_elements() > kMostFactor)
    throw InputError(fmt::format("a factorisation of {:.2g} operations and {:.2g} numbers", normal.flops(),
                                 double(normal.factor_elements())),
                     "solve leverage",
                     fmt::format("at most {:.2g} and {:.2g}", kMostFlops, double(kMostFactor)));
  normal.factorise();
  const SparseRows& j = at.jacobian;
  const NormalEquations& equations = normal.equations();
  const BlockPattern& pattern = equations.pattern();
  std::vector<int64_t> block(columns.block.size()), unknown(columns.block.size());
  Hat hat = empty_hat(instances, j.rows);
  for (size_t c = 0; c < block.size(); ++c) {
    block[c] = equations.block_at(columns.tangent[c] - columns.coordinate[c]);
    if (block[c] < 0) continue;  // no residual has it
    unknown[c] = pattern.first[size_t(block[c])] + columns.coordinate[c];
  }
  std::vector<double> step(size_t(equations.unknowns()), 0);
  const auto each = [&](int64_t row, auto f) {
    for (int64_t e = j.first[size_t(row)]; e < j.first[size_t(row) + 1]; ++e)
      f(size_t(j.column[size_t(e)]), j.values[size_t(e)]);
  };
  for (int64_t r = 0; r < j.rows; ++r)
    each(r, [&](size_t c, double v) { step[size_t(unknown[c])] += v * at.residuals[size_t(r)]; });
  normal.solve(step);
  for (int64_t r = 0; r < j.rows; ++r)
    each(r, [&](size_t c, double v) {
      if (!normal.holds(unknown[c])) hat.fitted[size_t(r)] += v * step[size_t(unknown[c])];
    });
  const Entries inverse(pattern, normal.inverse_entries());
  std::vector<size_t> own;
  Eigen::MatrixXd rows, between;
  double trace = 0;
  for (size_t i = 0; i < instances.size(); ++i) {
    const auto [first, count] = instances[i];
    own.clear();
    for (int64_t r = first; r < first + count; ++r)
      each(r, [&](size_t c, double) {
        if (!normal.holds(unknown[c])) own.push_back(c);
      });
    std::ranges::sort(own);
    own.erase(std::unique(own.begin(), own.end()), own.end());
    const auto n = Index(own.size());
    rows.setZero(count, n), between.resize(n, n);
    for (int64_t r = first; r < first + count; ++r)
      each(r, [&](size_t c, double v) {
        if (const auto found = std::ranges::lower_bound(own, c); found != own.end() && *found == c)
          rows(r - first, found - own.begin()) = v;
      });
    for (Index a = 0; a < n; ++a)
      for (Index b = 0; b <= a; ++b) {
        const size_t c = own[size_t(a)], d = own[size_t(b)];
        between(a, b) = between(b, a) =
            inverse(block[c], columns.coordinate[c], block[d], columns.coordinate[d]);
      }
    const Eigen::MatrixXd square = rows * between * rows.transpose();
    Eigen::Map<Eigen::MatrixXd>(hat.blocks.data() + hat.begin[i], count, count) = square;
    trace += square.trace();
  }
  hat.rank = std::llround(trace);  // of a projection
  return hat;
}

}  // namespace lockstep::solve
