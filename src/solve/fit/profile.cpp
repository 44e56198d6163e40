#include "solve/fit/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lockstep/error.hpp"
#include "lockstep/solve/evaluation.hpp"
#include "solve/fit/distributions.hpp"

namespace lockstep::solve {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// The t of a parameter that is held elsewhere (Bates and Watts 1988, 6.1): the root of the growth of the sum of squares over
/// the residuals' variance. It is linear in the parameter where the model is.
class Profile {
 public:
  Profile(const FitMinimum& fit, size_t parameter, Context& context, const Options& options)
      : fit_(fit), parameter_(parameter), context_(context), options_(options) {
    options_.method = Method::lm, options_.linear = Linear::dense_qr;
    options_.callback = {}, options_.checkpoint.clear(), options_.graduation = {};
    options_.function_tolerance = 1e-13, options_.gradient_tolerance = 0, options_.max_iterations = 300;
    options_.time_limit = 0;
  }

  /// Where t is `limit` on the side of `sign`; infinite where it stays below within the bounds.
  double crossing(double limit, double sign) {
    const double center = fit_.values[parameter_], error = fit_.errors[parameter_];
    const auto [low, high] = fit_.bounds[parameter_];
    const double bound = sign > 0 ? high : low;
    double inside = 0, inside_t = 0, outside = kInfinite, outside_t = kInfinite, step = limit * error;
    for (int tries = 0; tries < 120; ++tries) {
      bool last = false;
      if (sign * (center + sign * step - bound) >= 0) step = std::abs(bound - center), last = true;
      const double t = distance(center + sign * step);
      if (std::abs(t - limit) <= 1e-9 * limit) return center + sign * step;
      if (t < limit) {
        inside = step, inside_t = t;
        if (last || step > 1e9 * limit * error) return sign * kInfinite;
      } else {
        outside = step, outside_t = t;
      }
      if (std::isinf(outside)) {
        step *= std::clamp(1.02 * limit / std::max(t, 1e-3), 1.1, 4.0);
        continue;
      }
      if (outside - inside <= 1e-12 * outside) break;
      const double share = std::isinf(outside_t) ? 0.5 : (limit - inside_t) / (outside_t - inside_t);
      // Every third time by halves, so that neither end stays for long.
      step = inside + (outside - inside) * (tries % 3 == 2 ? 0.5 : std::clamp(share, 0.001, 0.999));
    }
    return center + sign * step;
  }
  double least() const { return least_; }

 private:
  /// Infinite where the model is not finite.
  double distance(double held) {
    std::vector<double> start = fit_.values;
    const size_t count = start.size();
    if (!fit_.covariance.empty())
      for (size_t k = 0; k < count; ++k)
        start[k] += fit_.covariance[k * count + parameter_] /
                    fit_.covariance[parameter_ * count + parameter_] * (held - fit_.values[parameter_]);
    for (size_t k = 0; k < count; ++k)
      start[k] = std::clamp(start[k], fit_.bounds[k].first, fit_.bounds[k].second);
    double squares = kInfinite;
    for (const std::vector<double>& from : {start, fit_.values}) {
      const auto values = fit_.problem.values(fit_.block);
      std::copy(from.begin(), from.end(), values.begin());
      values[parameter_] = held;
      try {
        if (count == 1) {
          squares = 2 * evaluate(fit_.problem, context_).cost;
        } else if (const Summary s = minimize(fit_.problem, context_, options_);
                   s.termination != Termination::failure) {
          squares = 2 * s.final_cost;
        }
      } catch (const InputError&) {}  // not finite there
      if (std::isnan(squares)) squares = kInfinite;
      if (std::isfinite(squares)) break;
    }
    least_ = std::min(least_, squares);
    return std::sqrt(std::max(0.0, squares - fit_.squares) / fit_.variance);
  }

  const FitMinimum& fit_;
  size_t parameter_;
  Context& context_;
  Options options_;
  double least_ = kInfinite;
};

}  // namespace

std::array<double, 3> profile_levels() {
  return {std::erf(1 / std::numbers::sqrt2), std::erf(2 / std::numbers::sqrt2),
          std::erf(3 / std::numbers::sqrt2)};
}

std::vector<FitProfile> profile_intervals(const FitMinimum& fit, std::span<const std::string> names,
                                          Context& context, const Options& options,
                                          std::vector<std::string>& notes) {
  std::vector<FitProfile> out;
  if (!(fit.variance > 0)) return out;
  for (size_t p = 0; p < names.size(); ++p) {
    if (!std::isfinite(fit.errors[p])) continue;
    const int held[] = {int(p)};
    if (names.size() > 1) fit.problem.fix_coordinates(fit.block, 0, held);
    Profile profile(fit, p, context, options);
    FitProfile row{names[p]};
    for (size_t k = 0; k < row.lower.size(); ++k) {
      const double t = student_quantile((1 + profile_levels()[k]) / 2, fit.freedom);
      row.lower[k] = profile.crossing(t, -1), row.upper[k] = profile.crossing(t, 1);
    }
    if (profile.least() < fit.squares * (1 - 1e-6))
      notes.push_back(
          fmt::format("with another {} the sum of squares is {:.6g}: the fit is not at its least minimum",
                      names[p], profile.least()));
    out.push_back(std::move(row));
  }
  fit.problem.fix_coordinates(fit.block, 0, {});
  std::copy(fit.values.begin(), fit.values.end(), fit.problem.values(fit.block).begin());
  return out;
}

FitBands bands_of(const FitMinimum& fit, const Eigen::MatrixXd& jacobian, std::span<const double> weights) {
  FitBands out;
  const auto count = Eigen::Index(fit.values.size());
  const Eigen::Map<const Eigen::MatrixXd> covariance(fit.covariance.data(), count, count);
  const double t = student_quantile((1 + out.level) / 2, fit.freedom);
  for (Eigen::Index row = 0; row < jacobian.rows(); ++row) {
    const Eigen::VectorXd slopes = jacobian.row(row);
    const double mean = slopes.dot(covariance * slopes), w = weights[size_t(row)];
    out.confidence.push_back(t * std::sqrt(mean) / w);
    out.prediction.push_back(t * std::sqrt(mean + fit.variance) / w);
  }
  return out;
}

}  // namespace lockstep::solve
