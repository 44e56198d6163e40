// Pictures of grids: colours over a shaded relief, title and facts, legend, north, sun and scale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/pictures/colormap.hpp"
#include "io/pictures/png.hpp"

namespace lockstep::io {

/// A value with a name and a colour of its own, such as sun and shade.
struct MapClass {
  float value = 0;
  std::string label;
  Rgb ink{};
};

/// The sun as the map's ground sees it: degrees clockwise from the picture's top, and above the horizon.
struct MapSun {
  double azimuth_deg = 0, altitude_deg = 0;
};

/// Facts printed beside a map. Empty ones are left out.
struct MapFacts {
  std::string date;           ///< "2015-06-21 15:00, UTC+2"
  std::string crs;            ///< "SWEREF99 TM (EPSG:3006)"
  std::optional<MapSun> sun;  ///< shown beside the map; the relief is lit from there
  bool north_is_up = false;   ///< draws the arrow
};

struct MapPictureOptions {
  std::string title;
  std::string unit;
  ColorMap map = ColorMap::sky;            ///< `balance` is laid evenly about zero
  std::optional<double> minimum, maximum;  ///< of the colours; default: those of the data
  std::vector<MapClass> classes;           ///< swatches instead of a bar; each cell takes the nearest value
  bool hide_zero = false;                  ///< cells of value 0 show the relief alone
  const std::vector<uint8_t>* shown =
      nullptr;               ///< a value a cell; those of 0 show the relief alone, and scale no colour
  std::string hidden_label;  ///< of these in the legend
  const std::vector<float>* relief = nullptr;  ///< heights (m) on the same grid, shaded under the colours
  double pixel_size = 1.0;  ///< metres; for the relief and the scale bar, which 0 leaves out
  int target_pixels = 960;  ///< wanted length of the map's longer side
  MapFacts facts;
};

/// Draws a grid, row 0 on top. Missing cells (NaN) are light grey. Small grids are magnified by a whole
/// factor, large ones averaged down (of classes the colours).
Image draw_map(const std::vector<float>& values, int64_t rows, int64_t cols,
               const MapPictureOptions& options);

/// Light of a surface 0 … 1 from a sun (default: north-west, 45° high), slopes by Horn (1981). NaN where a
/// neighbour is missing.
std::vector<float> hillshade(const std::vector<float>& heights, int64_t rows, int64_t cols, double pixel_size,
                             const MapSun& sun = {315, 45});

/// Name and EPSG code of a CRS in WKT: "SWEREF99 TM (EPSG:3006)"; empty for an empty text.
std::string crs_title(std::string_view wkt);

}  // namespace lockstep::io
