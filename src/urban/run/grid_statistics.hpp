// Statistics of a grid that a run has written.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Adds f32 values up, exactly: significands are whole numbers, which are counted for each exponent. So the order
/// of the values does not matter. For less than 2^38 of them.
class ExactSum {
 public:
  void add(float value, size_t turn) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t exponent = (bits >> 23) & 0xff;
    const auto size = static_cast<int64_t>((bits & 0x7fffff) | (exponent ? 0x800000 : 0));
    counts_[turn % 2][exponent] += bits >> 31 ? -size : size;
  }
  double value() const {
    double sum = 0;
    for (int e = 254; e >= 0; --e)
      sum += std::ldexp(static_cast<double>(counts_[0][size_t(e)] + counts_[1][size_t(e)]),
                        std::max(e, 1) - 150);
    return sum;
  }

 private:
  // Two by turns: neighbouring values mostly have one exponent, and a count need not wait for the one before.
  std::array<std::array<int64_t, 256>, 2> counts_ = {};
};

/// Lowest, highest, mean and missing values of a grid that comes in parts, in any order.
class GridStatistics {
 public:
  /// `counted`: 0 for values that are left out, a value a cell; empty: all count. Missing ones are counted everywhere.
  void take(std::span<const float> values, std::span<const uint8_t> counted = {}) {
    for (size_t k = 0; k < values.size(); ++k) {
      const float v = values[k];
      if (std::isnan(v)) {
        ++missing_;
        continue;
      }
      if (!counted.empty() && counted[k] == 0) continue;
      if (std::isinf(v))
        infinite_ += v;
      else
        sum_.add(v, k);
      ++count_;
      minimum_ = std::min(minimum_, v);
      maximum_ = std::max(maximum_, v);
    }
  }
  void fill(OutputGrid& grid) const {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    // + 0.0: of zeros of both signs the one that came first is no matter.
    grid.minimum = count_ ? minimum_ + 0.0 : none;
    grid.maximum = count_ ? maximum_ + 0.0 : none;
    grid.mean = count_ ? (sum_.value() + infinite_) / static_cast<double>(count_) : none;
    grid.missing = missing_;
  }

 private:
  ExactSum sum_;
  double infinite_ = 0;
  float minimum_ = std::numeric_limits<float>::infinity(), maximum_ = -minimum_;
  int64_t count_ = 0, missing_ = 0;
};

}  // namespace lockstep::urban
