// Statistics of a grid that a run has written.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Lowest, highest, mean and missing values of a grid that comes in parts.
class GridStatistics {
 public:
  void take(std::span<const float> values) {
    for (const float v : values) {
      if (std::isnan(v)) {
        ++missing_;
        continue;
      }
      sum_ += static_cast<double>(v);
      ++count_;
      minimum_ = std::min<double>(minimum_, v);
      maximum_ = std::max<double>(maximum_, v);
    }
  }
  void fill(OutputGrid& grid) const {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    grid.minimum = count_ ? minimum_ : none;
    grid.maximum = count_ ? maximum_ : none;
    grid.mean = count_ ? sum_ / static_cast<double>(count_) : none;
    grid.missing = missing_;
  }

 private:
  double sum_ = 0, minimum_ = std::numeric_limits<double>::infinity(), maximum_ = -minimum_;
  int64_t count_ = 0, missing_ = 0;
};

}  // namespace lockstep::urban
