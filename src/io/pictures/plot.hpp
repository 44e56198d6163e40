// Plots of curves and of bars, with axes, ticks, labels and a legend that never cover each other.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/pictures/drawing.hpp"

namespace lockstep::io {

struct PlotSeries {
  std::string name;          // in the legend; empty for none
  std::vector<double> x, y;  // as many of both; points that are not finite break the line
  bool line = true, marker = true, dashed = false;
  std::optional<Rgb> ink = {};  // default: by the place among the series
};

struct PlotOptions {
  std::string title, x_label, y_label;
  /// Values that are not positive are left out of a logarithmic axis.
  bool log_x = false, log_y = false;
  /// Ticks of x at whole numbers only.
  bool whole_x = false;
  /// Ticks of x at these values, as far as their labels have room.
  std::vector<double> x_ticks = {};
  int width = 960, height = 480;
};

/// Draws all series into one frame, the legend where no data are: in the frame, to its right, or above it
/// (which makes the drawing higher). Throws InternalError where a series has not as many x as y, or the frame
/// has no room.
Drawing draw_plot(std::span<const PlotSeries> series, const PlotOptions& options);

/// Horizontal bars from zero with their names to the left and their values behind them.
Drawing draw_bars(const std::vector<std::pair<std::string, double>>& bars, const std::string& title,
                  const std::string& unit);

/// Drawings below each other.
Drawing stack(std::span<const Drawing> parts);

/// Clearly different colours, for series.
Rgb series_ink(size_t k);

/// 1, 2 or 5 times a power of ten, at least `value` (positive).
double nice_step(double value);
/// The multiples of `step` in low … high, with as many decimals as the step needs.
std::vector<std::pair<double, std::string>> even_ticks(double low, double high, double step);

}  // namespace lockstep::io
