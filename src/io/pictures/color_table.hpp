// Colours of a map for many pixels.
#pragma once

#include <algorithm>
#include <vector>

#include "io/pictures/colormap.hpp"

namespace lockstep::io {

/// color() at the nearest of kSteps + 1 places, which changes a channel by one level at most.
class ColorTable {
 public:
  explicit ColorTable(ColorMap map) {
    for (int k = 0; k <= kSteps; ++k) colors_.push_back(color(map, static_cast<double>(k) / kSteps));
  }
  const Rgb& operator()(double t) const {
    return colors_[t > 0 ? static_cast<size_t>(std::min(t, 1.0) * kSteps + 0.5) : 0];
  }

 private:
  static constexpr int kSteps = 4096;
  std::vector<Rgb> colors_;
};

}  // namespace lockstep::io
