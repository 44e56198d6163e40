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

/// Facts printed next to a map. Empty ones are left out.
struct MapFacts {
  std::string date;           ///< "2015-06-21 15:00, UTC+2"
  std::string crs;            ///< "SWEREF99 TM (EPSG:3006)"
  std::optional<MapSun> sun;  ///< shown next to the map; the relief is lit from there
  bool north_is_up = false;   ///< draws the arrow
  std::string place, scenario;
};

/// Drawn in place of values: roofs, water.
struct MapCover {
  std::string label;
  Rgb ink{};
};

/// A line along the inner border of a mask: buildings, crowns.
struct MapOutline {
  const std::vector<uint8_t>* cells = nullptr;  ///< not 0 inside
  std::string label;
  Rgb ink{};
  bool dotted = false;
};

struct MapPictureOptions {
  std::string title;
  std::string unit;
  ColorMap map = ColorMap::sky;            ///< `balance` is laid evenly about zero
  std::optional<double> minimum, maximum;  ///< of the colours; default: those of the data
  std::vector<MapClass> classes;           ///< swatches instead of a bar; each cell takes the nearest value
  bool hide_zero = false;                  ///< cells of value 0 show the relief alone
  /// 0, or k for the k-th of `covers`: such cells show the cover and scale no colour.
  const std::vector<uint8_t>* cover = nullptr;
  std::vector<MapCover> covers;
  std::vector<MapOutline> outlines;
  /// Heights (m) on the same grid. Their light falls on cells without a value; on values only where these are heights
  /// themselves (ColorMap::terrain), since it makes colours that no legend has.
  const std::vector<float>* relief = nullptr;
  /// RGB, of the map's extent and any size. Cells without a value and covers show it, values are mixed with its lightness, and
  /// there is no relief.
  const Image* under = nullptr;
  double pixel_size = 1.0;  ///< metres; for the relief and the scale bar, which 0 leaves out
  int target_pixels = 960;  ///< target length of the map's longer side
  MapFacts facts;
  std::string source;  ///< below the map
};

/// Classes, covers and outlines that a map of these values shows, by label: its legend has these, and no other.
std::vector<std::string> shown_labels(const std::vector<float>& values, int64_t rows, int64_t cols,
                                      const MapPictureOptions& options);

/// Draws a grid, row 0 on top. Missing cells (NaN) are light grey. Small grids are magnified by a whole
/// factor, large ones averaged down (of classes the most
/// frequent). The size depends on the options alone, not on the values.
Image draw_map(const std::vector<float>& values, int64_t rows, int64_t cols,
               const MapPictureOptions& options);

/// Light of a surface 0 … 1 from a sun (default: north-west, 45° high), slopes by Horn (1981). NaN where a
/// neighbour is missing.
std::vector<float> hillshade(const std::vector<float>& heights, int64_t rows, int64_t cols, double pixel_size,
                             const MapSun& sun = {315, 45});

/// Name and EPSG code of a CRS in WKT: "SWEREF99 TM (EPSG:3006)"; empty for an empty text.
std::string crs_title(std::string_view wkt);

}  // namespace lockstep::io
