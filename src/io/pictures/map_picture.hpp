// Pictures of grids: colours over a shaded relief, title, colour bar, scale bar.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/pictures/colormap.hpp"
#include "io/pictures/png.hpp"

namespace lockstep::io {

struct MapPictureOptions {
  std::string title;
  std::string unit;
  ColorMap map = ColorMap::sky;
  std::optional<double> minimum, maximum;      ///< of the colours; default: those of the data
  bool hide_zero = false;                      ///< cells of value 0 show the relief alone
  const std::vector<float>* relief = nullptr;  ///< heights (m) on the same grid, shaded under the colours
  double pixel_size = 1.0;  ///< metres; for the relief and the scale bar, which 0 leaves out
  int target_pixels = 960;  ///< wanted length of the map's longer side
};

/// Draws a grid, row 0 on top. Missing cells (NaN) are light grey. Small grids are magnified by a whole
/// factor, large ones averaged down.
Image draw_map(const std::vector<float>& values, int64_t rows, int64_t cols,
               const MapPictureOptions& options);

/// Light of a surface 0 … 1 from the north-west, 45° high, slopes by Horn (1981). NaN where a neighbour is
/// missing.
std::vector<float> hillshade(const std::vector<float>& heights, int64_t rows, int64_t cols,
                             double pixel_size);

/// Draws text in a 5 × 7 pixel face, each pixel `scale` wide; returns the width. UTF-8; unknown characters
/// are blank.
int draw_text(Image& image, int x, int y, const std::string& text, const Rgb& ink, int scale);
int text_width(const std::string& text, int scale);

}  // namespace lockstep::io
