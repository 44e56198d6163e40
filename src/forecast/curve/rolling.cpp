#include "forecast/curve/rolling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::forecast {
namespace {

constexpr double kOrigins[] = {0.3, 0.42, 0.55, 0.7, 0.84};  // shares of the rows
constexpr size_t kLeastOriginRows = 12;
constexpr double kPriorOrigins =
    1.5;  // as many origins that found the deviations right stand for none at all
constexpr double kLeastWidening = 0.5, kMostWidening = 4;

/// A later value: how far it is off, and the deviations that were said of the trend on its side and of single values.
struct JudgedRow {
  double off, deviation, noise;
};

struct Judged {
  double below = 0, above = 0, count = 0;  // squares of normalised errors of stretches
  double errors[4] = {0, 0, 0, 0};
  std::vector<JudgedRow> rows;
};

Judged judge(const CurveEnsemble& ensemble, std::span<const double> steps, std::span<const double> losses,
             size_t seen, size_t end) {
  Judged j;
  const bool relative = ensemble.curve().positive;
  const double noise = ensemble.noise().deviation;
  // Ten stretches of later rows, each by its mean.
  const size_t stretches = std::min<size_t>(10, end - seen);
  for (size_t s = 0; s < stretches; ++s) {
    const size_t a = seen + (end - seen) * s / stretches, b = seen + (end - seen) * (s + 1) / stretches;
    double mean = 0, step = 0;
    for (size_t i = a; i < b; ++i) {
      mean += losses[i] / double(b - a);
      step += steps[i] / double(b - a);
    }
    const EnsemblePoint p = ensemble.at(step);
    const double level = relative ? mean : 1;
    const double error = relative ? std::log(mean / p.mean) : mean - p.mean;
    const double scatter = noise * noise * mean_variance(int(b - a), ensemble.noise().correlation);
    const double said_deviation = p.side(error < 0);
    // Twice, as deviations of a side are.
    (error < 0 ? j.below : j.above) +=
        2 * std::max(error * error - scatter, 0.0) / std::max(said_deviation * said_deviation, 1e-300);
    j.count += 1;
    const SmoothedCurve& c = ensemble.curve();
    const double said[4] = {p.mean, ensemble.power_law(step), c.last_value, c.recent_mean};
    for (int k = 0; k < 4; ++k) j.errors[k] += std::abs(said[k] - mean) / std::abs(level);
    for (size_t i = a; i < b; ++i) {
      const double off = relative ? std::log(losses[i] / p.mean) : losses[i] - p.mean;
      j.rows.push_back({off, p.side(off < 0), noise});
    }
  }
  return j;
}

}  // namespace

double normal_quantile(double coverage) {
  // erf(z / sqrt 2) = coverage, by bisection.
  double low = 0, high = 10;
  for (int k = 0; k < 60; ++k) {
    const double z = 0.5 * (low + high);
    (std::erf(z / std::sqrt(2.0)) < coverage ? low : high) = z;
  }
  return 0.5 * (low + high);
}

RollingResult roll_origins(std::span<const double> steps, std::span<const double> losses, double reach,
                           double coverage) {
  RollingResult result;
  const size_t n = steps.size();
  const double z = normal_quantile(coverage);
  double below = 0, above = 0, origins = 0, errors[4] = {0, 0, 0, 0}, stretches = 0;
  std::vector<Judged> all;
  for (const double share : kOrigins) {
    const auto seen = size_t(double(n) * share);
    if (seen < kLeastOriginRows || n - seen < 3) continue;
    const CurveEnsemble ensemble(steps.first(seen), losses.first(seen));
    const SmoothedCurve& c = ensemble.curve();
    size_t end = seen;
    while (end < n && (steps[end] + c.shift) / c.scale <= reach) ++end;
    if (end - seen < 2) continue;
    const Judged j = judge(ensemble, steps, losses, seen, end);
    below += j.below / j.count;
    above += j.above / j.count;
    origins += 1;
    for (int k = 0; k < 4; ++k) errors[k] += j.errors[k];
    stretches += j.count;
    all.push_back(j);
    result.backtest.origins.push_back(steps[seen - 1]);
  }
  if (origins == 0) return result;
  const auto widening = [&](double squares) {
    return std::clamp(std::sqrt((kPriorOrigins + squares) / (kPriorOrigins + origins)), kLeastWidening,
                      kMostWidening);
  };
  result.widening = {widening(below), widening(above)};
  // The share of the past that these bands would have held, each origin of the same weight.
  double inside = 0;
  for (const Judged& j : all)
    for (const JudgedRow& r : j.rows) {
      const double side = r.off < 0 ? result.widening.below : result.widening.above;
      inside += std::abs(r.off) <= z * std::hypot(r.deviation * side, r.noise)
                    ? 1 / (double(j.rows.size()) * origins)
                    : 0;
    }
  constexpr const char* kNames[4] = {"ensemble", "power law", "last value", "recent mean"};
  for (int k = 0; k < 4; ++k)
    result.backtest.rows.push_back(
        {kNames[k], errors[k] / stretches, k == 0 ? inside : std::numeric_limits<double>::quiet_NaN()});
  return result;
}

}  // namespace lockstep::forecast
