// check_heights() of a grid that comes in bands of rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "io/rasters/raster.hpp"

namespace lockstep::io {

/// Throws and warns as check_heights() does of the whole grid.
class HeightCheck {
 public:
  HeightCheck(HeightKind kind, int64_t cols, std::string where)
      : kind_(kind), cols_(cols), where_(std::move(where)) {}
  /// The next rows, from the first on.
  void take(std::span<const float> heights);
  /// The warning, or "".
  std::string finish() const;

 private:
  struct Place {
    float value = 0;
    int64_t position = -1;  // none
  };
  std::string text(const Place& place) const;

  HeightKind kind_;
  int64_t cols_;
  std::string where_;
  int64_t taken_ = 0;
  Place low_, high_;
};

}  // namespace lockstep::io
