#include "solve/sketch/diagnose.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::solve::sketch {
namespace {

constexpr double kDependent = 1e-6;   // what is left of a row, over its length
constexpr double kDetermined = 1e-8;  // squared share of a coordinate outside the row space

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

// An orthonormal basis of the rows taken so far. Each of its vectors is remembered as a combination of rows,
// so that a dependent row can be traced to those it depends on.
class RowSpace {
 public:
  explicit RowSpace(size_t columns) : columns_(columns) {}
  size_t rank() const { return basis_.size(); }

  /// True if the row was independent. Otherwise `shares` has its combination of the rows taken.
  bool take(std::span<const double> row, std::vector<double>& shares) {
    const double length = std::sqrt(dot(row, row));
    std::vector<double> rest(row.begin(), row.end()), along(basis_.size(), 0.0);
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t b = 0; b < basis_.size(); ++b) {
        const double share = dot(rest, basis_[b]);
        along[b] += share;
        for (size_t k = 0; k < columns_; ++k) rest[k] -= share * basis_[b][k];
      }
    }
    shares.assign(taken_, 0.0);
    for (size_t b = 0; b < basis_.size(); ++b)
      for (size_t t = 0; t < combination_[b].size(); ++t) shares[t] += along[b] * combination_[b][t];
    const double left = std::sqrt(dot(rest, rest));
    if (!(left > kDependent * length) || length == 0) return false;
    for (double& x : rest) x /= left;
    std::vector<double> combination(taken_ + 1);
    for (size_t t = 0; t < taken_; ++t) combination[t] = -shares[t] / left;
    combination[taken_] = 1 / left;
    ++taken_;
    basis_.push_back(std::move(rest));
    combination_.push_back(std::move(combination));
    return true;
  }

  // Squared length of the part of coordinate axis `column` outside the row space.
  double freedom(size_t column) const {
    double inside = 0;
    for (const auto& b : basis_) inside += b[column] * b[column];
    return 1 - inside;
  }

 private:
  size_t columns_, taken_ = 0;
  std::vector<std::vector<double>> basis_, combination_;
};

}  // namespace

Freedom analyse_freedom(const Sketch& sketch, const ConstraintSystem& system, const Coordinates& at) {
  const auto columns = size_t(system.columns());
  const std::vector<double> jacobian = system.jacobian(at);
  RowSpace space(columns);
  std::vector<size_t> taken;  // row numbers
  Freedom freedom;
  const std::vector<int32_t>& constraint = system.row_constraint();
  for (size_t row = 0; row < constraint.size();) {
    Redundancy entry;
    entry.constraint = constraint[row];
    for (; row < constraint.size() && constraint[row] == entry.constraint; ++row) {
      ++entry.rows;
      const auto numbers = std::span(jacobian).subspan(row * columns, columns);
      std::vector<double> shares;
      if (space.take(numbers, shares)) {
        taken.push_back(row);
        continue;
      }
      ++entry.redundant_rows;
      const double length = std::sqrt(dot(numbers, numbers));
      for (size_t t = 0; t < shares.size(); ++t) {
        const auto other = std::span(jacobian).subspan(taken[t] * columns, columns);
        const bool part = std::abs(shares[t]) * std::sqrt(dot(other, other)) > kDependent * length;
        if (part && constraint[taken[t]] != entry.constraint)
          entry.follows_from.push_back(constraint[taken[t]]);
      }
    }
    if (entry.redundant_rows == 0) continue;
    std::sort(entry.follows_from.begin(), entry.follows_from.end());
    entry.follows_from.erase(std::unique(entry.follows_from.begin(), entry.follows_from.end()),
                             entry.follows_from.end());
    freedom.redundant.push_back(std::move(entry));
  }
  freedom.columns = int64_t(columns);
  freedom.rank = int64_t(space.rank());
  for (size_t p = 0; p < sketch.points.size(); ++p) {
    const int64_t first = system.point_column(int32_t(p));
    freedom.point_determined.push_back(first < 0 || (space.freedom(size_t(first)) < kDetermined &&
                                                     space.freedom(size_t(first) + 1) < kDetermined));
  }
  for (size_t c = 0; c < sketch.circles.size(); ++c) {
    freedom.circle_determined.push_back(freedom.point_determined[size_t(sketch.circles[c].center)] &&
                                        space.freedom(size_t(system.radius_column(int32_t(c)))) <
                                            kDetermined);
  }
  return freedom;
}

}  // namespace lockstep::solve::sketch
