// Order statistics of measured times.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace lockstep {

/// The value that a share (0 … 1) of the values does not exceed, interpolated linearly between the two nearest
/// in order, so that 0.5 of an even number is the mean of the middle two; 0 where there are no values.
inline double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - std::floor(at));
}

inline double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

}  // namespace lockstep
