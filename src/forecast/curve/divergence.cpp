#include "forecast/curve/divergence.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::forecast {
namespace {

constexpr double kErrors = 6, kFactor = 1.5, kShareOfFall = 0.25;

double median(std::vector<double> values) {
  const auto middle = values.begin() + ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Standard deviation of single rows about their neighbours, robust: a normal's median |second difference| is 0.6745 times
/// its deviation, which is sqrt(6) times that of the rows. A trend that is straight does not count.
double scatter_of(const std::vector<double>& values) {
  std::vector<double> differences;
  for (size_t k = 2; k < values.size(); ++k)
    differences.push_back(std::abs(values[k] - 2 * values[k - 1] + values[k - 2]));
  return median(std::move(differences)) / (0.6745 * std::sqrt(6.0));
}

}  // namespace

std::optional<Rise> find_rise(std::span<const double> steps, std::span<const double> losses) {
  const size_t n = losses.size(), width = std::clamp<size_t>(n / 20, 3, 25);
  const bool positive = std::all_of(losses.begin(), losses.end(), [](double v) { return v > 0; });
  std::vector<double> values;
  for (const double v : losses) values.push_back(positive ? std::log(v) : v);
  const auto level = [&](size_t end) {
    return median({values.begin() + ptrdiff_t(end - width), values.begin() + ptrdiff_t(end)});
  };
  size_t least_at = width;
  double least = level(width);
  for (size_t end = width; end <= n; ++end)
    if (const double l = level(end); l < least) least = l, least_at = end;
  const double now = level(n), risen = now - least;
  const double enough = positive ? std::log(kFactor) : kShareOfFall * (level(width) - least);
  // Of the least of many medians, whose width is that of single rows over sqrt(width).
  const double error = scatter_of(values) / std::sqrt(double(width));
  if (!(risen > 0) || risen < enough || risen < kErrors * error) return {};
  const auto loss = [&](double value) { return positive ? std::exp(value) : value; };
  return Rise{steps[least_at - 1 - width / 2], loss(least), loss(now)};
}

}  // namespace lockstep::forecast
