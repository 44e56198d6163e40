// Wind and air temperature of each pixel, from files of the raster's grid.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/series/weather/weather.hpp"
#include "lockstep/urban/series.hpp"
#include "urban/city/prepare.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/tiles/tiling.hpp"

namespace lockstep::urban {

using FieldPlane = std::vector<float>;  // (rows, cols) of the raster

/// Two planes, and the share of the second between them.
struct BetweenPlanes {
  size_t first = 0, second = 0;
  float share = 0;
  float at(float a, float b) const;  ///< not beyond either
};

/// Shares of the wind at a reference height, at `height_m` above each pixel.
struct WindField {
  std::vector<double> directions_deg;  ///< in ascending order, below 360; none: of any wind
  std::vector<FieldPlane> factors;
  double height_m = 1.5, reference_height_m = 10;
  float most = 1;

  bool empty() const { return factors.empty(); }
  BetweenPlanes at(double direction_deg) const;
  /// Wind at the field's height where its share is 1, from one measured at another height.
  double reference(double wind, double measured_at_m) const;
};

/// Air temperature of each pixel: K above the weather's, or °C.
struct AirField {
  std::vector<FieldPlane> planes;
  std::vector<io::CivilMinutes> times;  ///< of the planes, ascending; none: one plane for all steps
  bool absolute = false;

  bool empty() const { return planes.empty(); }
  BetweenPlanes at(io::CivilMinutes time) const;
  /// K above the weather's `air_c` at a step, of pixel p of the raster.
  float offset(const BetweenPlanes& between, size_t p, double air_c) const;
};

/// Lowest and highest of the offsets of a tile over all steps, or beyond them.
std::pair<float, float> offset_range(const AirField& field, const Tile& tile, int64_t cols,
                                     const io::WeatherTable& weather);

/// `ground`: 1 where a pixel must have a value; elsewhere a missing one is that of the weather. Throw OptionError and
/// InputError naming file, band and pixel. `utc_offset_h`: of the weather's clock.
WindField read_wind_field(const WindFieldOptions& options, const LoadedCity& city,
                          std::span<const uint8_t> ground, const io::WeatherTable& weather);
AirField read_air_field(const AirFieldOptions& options, const LoadedCity& city,
                        std::span<const uint8_t> ground, const io::WeatherTable& weather,
                        double utc_offset_h);

/// The part of a plane under a tile's core.
FieldPlane under_core(const FieldPlane& plane, const Tile& tile, int64_t cols);

}  // namespace lockstep::urban
