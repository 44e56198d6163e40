// Hours of the day and thresholds of outputs, for statistics and summaries of runs.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::urban {

/// A window of hours of the day. Statistics use the intervals that are within it.
struct HourWindow {
  int from = 0, to = 24;
  /// Whether an interval of `step_min` minutes is within the window. `end_min`: end of the interval, in minutes after any
  /// midnight.
  bool holds(int64_t end_min, int64_t step_min) const;
};

/// A threshold of an output, such as "utci>38".
struct Threshold {
  std::string text, output;
  bool above = true, equal = false;
  float bound = 0;  ///< f32 like the grids, so that values can be equal to it
  bool holds(float value) const {
    return above ? (equal ? value >= bound : value > bound) : (equal ? value <= bound : value < bound);
  }
};
/// Throws OptionError, which names the option `threshold`, for another text.
Threshold parse_threshold(const std::string& text);

}  // namespace lockstep::urban
