// Line plots with axes, ticks, labels and a legend.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/pictures/png.hpp"

namespace lockstep::io {

struct PlotSeries {
  std::string name;          // in the legend; empty for none
  std::vector<double> x, y;  // as many of both; points that are not finite break the line
  bool line = true, marker = true;
};

struct PlotOptions {
  std::string title, x_label, y_label;
  /// Values that are not positive are left out of a logarithmic axis.
  bool log_x = false, log_y = false;
  /// Ticks of x at whole numbers only.
  bool whole_x = false;
  int width = 960, height = 480;
};

/// Draws all series into one frame, the legend where no data are: in the frame, or above it. Throws
/// InternalError where a series has not as many x as y.
Image draw_plot(std::span<const PlotSeries> series, const PlotOptions& options);

/// Pictures of one number of channels below each other on white.
Image stack_images(std::span<const Image> images);

}  // namespace lockstep::io
