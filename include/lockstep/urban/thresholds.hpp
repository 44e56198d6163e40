// Hours of the day, and bounds of outputs, as statistics and summaries of runs count them.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::urban {

/// Hours of the day, of which the intervals within count.
struct HourWindow {
  int from = 0, to = 24;
  /// Whether an interval of so many minutes is within; `end_min`: its end on the clock, from any midnight on.
  bool holds(int64_t end_min, int64_t step_min) const;
};

/// A bound of an output, "utci>38".
struct Threshold {
  std::string text, output;
  bool above = true, equal = false;
  float bound = 0;  ///< in the precision of grids, whose values may equal it
  bool holds(float value) const {
    return above ? (equal ? value >= bound : value > bound) : (equal ? value <= bound : value < bound);
  }
};
/// Throws OptionError of an option `threshold` for another text.
Threshold parse_threshold(const std::string& text);

}  // namespace lockstep::urban
