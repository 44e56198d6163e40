// Percentiles of large grids without sorting them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::urban {

/// The shares that tables of distributions show, in percent.
inline constexpr std::array<double, 7> kShares = {1, 5, 25, 50, 75, 95, 99};

/// The values that these shares (percent) of `values` do not exceed, interpolated linearly between the two nearest in order
/// as core/numbers/statistics.hpp does. NaN where there are no values; those must not be NaN.
std::vector<double> percentiles(std::span<const float> values, std::span<const double> shares);

}  // namespace lockstep::urban
