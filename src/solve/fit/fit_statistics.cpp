#include "solve/fit/fit_statistics.hpp"

#include <Eigen/Dense>
#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/host_program.hpp"
#include "solve/model/rank.hpp"

namespace lockstep::solve {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Eigen::VectorXd lengths_of_columns(const Eigen::MatrixXd& a) {
  Eigen::VectorXd lengths = a.colwise().norm();
  for (double& length : lengths)
    if (!(length > 0)) length = 1;
  return lengths;
}

/// psi and psi' at each residual.
std::pair<Eigen::VectorXd, Eigen::VectorXd> influence(const Eigen::VectorXd& r, const RobustLoss& loss) {
  Eigen::VectorXd psi = r, slope = Eigen::VectorXd::Ones(r.size());
  if (loss.kind == RobustLoss::Kind::none) return {psi, slope};
  autodiff::Tape graph;
  const Value s = graph.variable("s");
  const Value first = autodiff::gradient(robust_loss(loss, s), {s})[0];
  const autodiff::HostProgram<double> program(std::vector<Value>{first, autodiff::gradient(first, {s})[0]});
  for (Eigen::Index k = 0; k < r.size(); ++k) {
    const double square = r[k] * r[k];
    const std::vector<double> at = program({&square, 1});
    psi[k] = at[0] * r[k];
    slope[k] = at[0] + 2 * square * at[1];
  }
  return {psi, slope};
}

double deviation_of(const Eigen::VectorXd& r, Eigen::Index parameters, const RobustLoss& loss) {
  const Eigen::Index n = r.size();
  if (n <= parameters) return kNone;
  const auto [psi, slope] = influence(r, loss);
  const double mean = slope.mean();
  if (!(mean > 0)) return kNone;
  const double spread = (slope.array() - mean).square().mean() / (mean * mean);
  const double correction = 1 + double(parameters) / double(n) * spread;
  return correction * std::sqrt(psi.squaredNorm() / double(n - parameters)) / mean;
}

}  // namespace

FitStatistics fit_statistics(const Eigen::VectorXd& residuals, const Eigen::MatrixXd& jacobian,
                             const std::vector<uint8_t>& held, const RobustLoss& loss, bool absolute) {
  const Eigen::Index count = jacobian.cols();
  FitStatistics out;
  out.deviation = deviation_of(residuals, count, loss);
  const double scale = absolute ? 1 : out.deviation;
  out.undetermined.assign(size_t(count), 0);
  out.standard_errors.assign(size_t(count), kNone);
  out.covariance.assign(size_t(count * count), 0);
  std::vector<Eigen::Index> free;
  for (Eigen::Index p = 0; p < count; ++p)
    if (!held[size_t(p)]) free.push_back(p);
  if (free.empty()) return out;
  Eigen::MatrixXd j = jacobian(Eigen::all, free);
  const Eigen::VectorXd lengths = lengths_of_columns(j);
  j.array().rowwise() /= lengths.transpose().array();
  if (!j.allFinite()) {
    out.covariance.clear();
    return out;
  }
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(j);
  const Eigen::Index rows = std::min(j.rows(), j.cols());
  const Eigen::MatrixXd upper = qr.matrixQR().topRows(rows).triangularView<Eigen::Upper>();
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(upper, Eigen::ComputeFullV);
  const Eigen::VectorXd& s = svd.singularValues();
  Eigen::Index rank = 0;
  while (rank < s.size() && s[rank] > kRank * s[0]) ++rank;
  const Eigen::MatrixXd range = svd.matrixV().leftCols(rank) * s.head(rank).cwiseInverse().asDiagonal();
  const Eigen::MatrixXd inverse = range * range.transpose();
  bool singular = false;
  for (size_t a = 0; a < free.size(); ++a) {
    const Eigen::Index i = Eigen::Index(a);
    if (svd.matrixV().row(i).tail(Eigen::Index(free.size()) - rank).squaredNorm() > kShare) {
      out.undetermined[size_t(free[a])] = 1;
      singular = true;
      continue;
    }
    out.standard_errors[size_t(free[a])] = scale * std::sqrt(inverse(i, i)) / lengths[i];
    for (size_t b = 0; b < free.size(); ++b) {
      const Eigen::Index k = Eigen::Index(b);
      out.covariance[size_t(free[a] * count + free[b])] =
          scale * scale * inverse(i, k) / (lengths[i] * lengths[k]);
    }
  }
  if (singular || std::isnan(scale)) out.covariance.clear();
  return out;
}

Eigen::VectorXd least_solution(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  constexpr double kClear = 1e-8;  // of the last pivot over the first: full rank beyond doubt
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(a);
  const Eigen::Index last = std::min(a.rows(), a.cols()) - 1;
  if (a.rows() >= a.cols() && std::abs(qr.matrixR()(last, last)) > kClear * std::abs(qr.matrixR()(0, 0)))
    return qr.solve(b);
  const Eigen::VectorXd lengths = lengths_of_columns(a);
  Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> scaled;
  scaled.setThreshold(kRank);
  scaled.compute(a * lengths.cwiseInverse().asDiagonal());
  if (scaled.rank() == a.cols()) return qr.solve(b);
  return scaled.solve(b).cwiseQuotient(lengths);
}

}  // namespace lockstep::solve
