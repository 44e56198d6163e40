#include "forecast/curve/fit/smooth.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::forecast {
namespace {

constexpr int kBins = 64;

}  // namespace

SmoothedCurve smooth_curve(std::span<const double> steps, std::span<const double> losses) {
  SmoothedCurve c;
  const size_t n = steps.size();
  c.shift = steps[0] > 0 ? 0 : n > 1 ? steps[1] - steps[0] : 1;
  c.scale = steps[n - 1] + c.shift;
  c.positive = std::all_of(losses.begin(), losses.end(), [](double v) { return v > 0; });
  const double first = std::log((steps[0] + c.shift) / c.scale);
  for (size_t begin = 0; begin < n;) {
    // The bin that holds the row, and all rows in it.
    const double position = std::log((steps[begin] + c.shift) / c.scale);
    const double bin = first < 0 ? std::floor((position - first) / -first * kBins) : 0;
    const double edge = first < 0 ? first - first * (bin + 1) / kBins : 0;
    double x = 0, y = 0;
    size_t end = begin;
    while (end < n &&
           (end == begin || bin >= kBins - 1 || std::log((steps[end] + c.shift) / c.scale) < edge)) {
      x += std::log((steps[end] + c.shift) / c.scale);
      y += losses[end];
      ++end;
    }
    c.x.push_back(std::exp(x / double(end - begin)));
    c.y.push_back(y / double(end - begin));
    c.rows.push_back(int(end - begin));
    begin = end;
  }
  c.last_value = losses[n - 1];
  c.recent_rows = int(std::max<size_t>(n / 10, 1));
  c.recent_mean = c.recent_x = 0;
  for (size_t i = n - size_t(c.recent_rows); i < n; ++i) {
    c.recent_mean += losses[i] / c.recent_rows;
    c.recent_x += (steps[i] + c.shift) / c.scale / c.recent_rows;
  }
  return c;
}

CurveNoise noise_about(std::span<const double> losses, std::span<const double> trend, bool relative) {
  const size_t n = losses.size(), begin = n / 2;
  std::vector<double> r;
  for (size_t i = begin; i < n; ++i)
    r.push_back(relative ? losses[i] / std::max(trend[i], 1e-300) - 1 : losses[i] - trend[i]);
  double mean = 0, square = 0, lagged = 0;
  for (const double v : r) mean += v / double(r.size());
  for (size_t i = 0; i < r.size(); ++i) {
    square += (r[i] - mean) * (r[i] - mean);
    if (i > 0) lagged += (r[i] - mean) * (r[i - 1] - mean);
  }
  CurveNoise noise;
  noise.deviation = std::sqrt(square / double(std::max<size_t>(r.size() - 1, 1)));
  // A short series underestimates its correlation by about (1 + 4 rho) / n (Kendall 1954).
  const double rho = square > 0 ? lagged / square : 0;
  noise.correlation = std::clamp(rho + (1 + 4 * rho) / double(r.size()), 0.0, 0.95);
  return noise;
}

double mean_variance(int n, double correlation) {
  const double r = correlation, m = n;
  return (1 + r) / (1 - r) / m - 2 * r * (1 - std::pow(r, m)) / ((1 - r) * (1 - r) * m * m);
}

}  // namespace lockstep::forecast
