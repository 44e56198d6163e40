#include "forecast/curve/fit/ensemble.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace lockstep::forecast {
namespace {

constexpr double kModelError = 0.01;  // relative misfit that a right family is allowed
constexpr double kLeastShare =
    1e-12;  // of the recent mean: positive losses have a logarithm where a fit passes below 0
constexpr double kHoldOutShare = 0.25;  // of the bins, for the weights
// Doubt of extrapolation before any back-test, per unit of log(step). Shares of the slope in logarithms: losses continue
// falling past the floors of fits more often than they stop short of them. Without logarithms a share of the range.
constexpr double kFallDoubt = 0.7, kStayDoubt = 0.1, kRangeDoubt = 0.4, kWander = 0.5;
constexpr int kReplicas = 12, kRefinements = 6, kBlock = 4;

CurveData data_of(const SmoothedCurve& c, const CurveNoise& noise) {
  CurveData d{c.x, c.y, {}, c.positive};
  for (size_t i = 0; i < c.x.size(); ++i) {
    const double level = c.positive ? c.y[i] : 1;
    const double scatter = noise.deviation * noise.deviation * mean_variance(c.rows[i], noise.correlation);
    // Late rows matter more for what comes: a weight that falls by the square root of the distance.
    d.weight.push_back(std::sqrt(c.x[i]) / (level * level) / (kModelError * kModelError + scatter));
  }
  return d;
}

// A line in log(x) through the neighbouring bins: a trend without a family.
std::vector<double> local_trend(const SmoothedCurve& c, std::span<const double> steps) {
  std::vector<double> trend;
  const double width = 0.35;
  for (const double step : steps) {
    const double at = std::log((step + c.shift) / c.scale);
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, least = std::numeric_limits<double>::infinity();
    for (size_t k = 0; k < c.x.size(); ++k) {
      const double dx = std::log(c.x[k]) - at, u = dx / width;
      if (std::abs(u) > 3) continue;
      least = std::min(least, c.y[k]);
      const double weight = c.rows[k] * std::exp(-0.5 * u * u);
      w += weight;
      wx += weight * dx;
      wy += weight * c.y[k];
      wxx += weight * dx * dx;
      wxy += weight * dx * c.y[k];
    }
    const double det = w * wxx - wx * wx;
    trend.push_back(det > 1e-9 * w * w * width * width ? (wxx * wy - wx * wxy) / det
                                                       : wy / std::max(w, 1e-300));
    // Where the loss falls by orders of magnitude within the width, the line passes below all of it.
    if (c.positive && w > 0) trend.back() = std::max(trend.back(), 0.5 * least);
  }
  return trend;
}

}  // namespace

CurveEnsemble::CurveEnsemble(std::span<const double> steps, std::span<const double> losses)
    : curve_(smooth_curve(steps, losses)) {
  noise_ = noise_about(losses, local_trend(curve_, steps), curve_.positive);
  const CurveData data = data_of(curve_, noise_);
  for (const CurveFamily family : kCurveFamilies) {
    if (family == CurveFamily::recent_power && !curve_.positive) continue;
    fits_.push_back(fit_family(family, data));
    anchors_.push_back(anchor_of(fits_.back(), curve_.recent_mean));
  }
  weigh(data);
  resample(data);
}

// A fit that misses the recent rows is shifted onto them, as far as these are known.
double CurveEnsemble::anchor_of(const CurveFit& fit, double recent_mean) const {
  const double said = fit(curve_.recent_x);
  if (curve_.positive && said <= 0) return 0;
  const double off = curve_.positive ? std::log(std::max(recent_mean, 1e-300) / said) : recent_mean - said;
  const double scatter =
      noise_.deviation * noise_.deviation * mean_variance(curve_.recent_rows, noise_.correlation);
  const double misfit = curve_.positive ? kModelError : kModelError * std::abs(said);
  return off * misfit * misfit / (misfit * misfit + scatter);
}

double CurveEnsemble::member_at(const CurveFit& fit, double anchor, double x) const {
  const double value = fit(x);
  return curve_.positive ? std::max(value, kLeastShare * curve_.recent_mean) * std::exp(anchor)
                         : value + anchor;
}

// By the fit of all bins and by what a fit of the earlier ones says of the last ones.
void CurveEnsemble::weigh(const CurveData& data) {
  const size_t n = data.x.size(), kept = n - std::max<size_t>(size_t(double(n) * kHoldOutShare), 1);
  CurveData early{{data.x.begin(), data.x.begin() + ptrdiff_t(kept)},
                  {data.y.begin(), data.y.begin() + ptrdiff_t(kept)},
                  {data.weight.begin(), data.weight.begin() + ptrdiff_t(kept)},
                  data.positive};
  std::vector<double> score;
  for (const CurveFit& fit : fits_) {
    double held = 0, weights = 0;
    if (kept >= 6) {
      const CurveFit before = refine_fit(fit, early, 15);
      for (size_t i = kept; i < n; ++i) {
        held += data.weight[i] * std::pow(data.y[i] - before(data.x[i]), 2);
        weights += 1;
      }
    }
    const int parameters = 2 + shape_range(fit.family).count;
    const double in = fit.cost / std::max<double>(double(n) - parameters, 1);
    const double out = weights > 0 ? held / weights : in;
    // Both are about 1 for a family as good as the noise allows.
    score.push_back(1 / std::pow(0.3 + in + 0.5 * out, 2));
  }
  const double sum = std::accumulate(score.begin(), score.end(), 0.0);
  for (double& s : score) s /= sum;
  weights_ = score;
}

// Blocks of the residuals, which keep their correlation, are put onto the fit and it is fitted again.
void CurveEnsemble::resample(const CurveData& data) {
  std::mt19937_64 random(0x5eed);
  const size_t n = data.x.size();
  for (size_t m = 0; m < fits_.size(); ++m) {
    if (weights_[m] < 0.02) continue;
    std::vector<double> residual(n);
    for (size_t i = 0; i < n; ++i) {
      const double fitted = fits_[m](data.x[i]);
      residual[i] = (data.y[i] - fitted) * std::sqrt(data.weight[i]);
    }
    for (int k = 0; k < kReplicas; ++k) {
      CurveData again = data;
      for (size_t i = 0; i < n; i += kBlock) {
        const size_t from = random() % n;
        const double sign = random() % 2 ? 1 : -1;
        for (size_t j = i; j < std::min(i + kBlock, n); ++j)
          again.y[j] = fits_[m](data.x[j]) + sign * residual[(from + j - i) % n] / std::sqrt(data.weight[j]);
      }
      const CurveFit fit = refine_fit(fits_[m], again, kRefinements);
      // The same residuals move the recent mean.
      double recent = 0;
      int rows = 0;
      for (size_t i = n; i-- > 0 && rows < curve_.recent_rows;) {
        recent += again.y[i] * curve_.rows[i];
        rows += curve_.rows[i];
      }
      replicas_.push_back({m, fit, anchor_of(fit, recent / std::max(rows, 1))});
    }
  }
}

EnsemblePoint CurveEnsemble::at(double step) const {
  const double x = (step + curve_.shift) / curve_.scale;
  const auto measure = [&](double value) { return curve_.positive ? std::log(value) : value; };
  std::vector<double> said;
  double mean = 0, below = 0, above = 0;
  for (size_t m = 0; m < fits_.size(); ++m) {
    said.push_back(measure(member_at(fits_[m], anchors_[m], x)));
    mean += weights_[m] * said[m];
  }
  // Each side's variance is twice its part of the whole.
  const auto add = [&](double off, double weight) { (off < 0 ? below : above) += 2 * weight * off * off; };
  for (size_t m = 0; m < fits_.size(); ++m) add(said[m] - mean, weights_[m]);
  for (const Replica& r : replicas_)
    add(measure(member_at(r.fit, r.anchor, x)) - said[r.member], weights_[r.member] / kReplicas);
  const double beyond = std::max(std::log(x), 0.0);
  double fall = 0, stay = 0;
  if (curve_.positive) {
    const double slope = beyond * std::exp(fits_.back().shape[0]);
    fall = kFallDoubt * slope;
    stay = kStayDoubt * slope;
  } else {
    // Losses of either sign have no level: the range of the last half of the curve stands for it.
    const auto [low, high] =
        std::minmax_element(curve_.y.begin() + ptrdiff_t(curve_.y.size() / 2), curve_.y.end());
    fall = stay = kRangeDoubt * beyond * (*high - *low);
  }
  // Gradient noise moves parameters too: a random walk whose variance is a share of that of single values.
  const double wander = kWander * beyond * noise_.deviation * noise_.deviation;
  return {curve_.positive ? std::exp(mean) : mean, std::sqrt(below + fall * fall + wander),
          std::sqrt(above + stay * stay + wander)};
}

double CurveEnsemble::power_law(double step) const { return fits_[0]((step + curve_.shift) / curve_.scale); }

double CurveEnsemble::relative_error(size_t member) const {
  double sum = 0;
  for (size_t i = 0; i < curve_.x.size(); ++i)
    sum += std::pow((curve_.y[i] - fits_[member](curve_.x[i])) / (curve_.positive ? curve_.y[i] : 1), 2);
  return std::sqrt(sum / double(curve_.x.size()));
}

}  // namespace lockstep::forecast
