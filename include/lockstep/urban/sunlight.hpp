// Hours of sun of a day or a period, without weather: with and without plants. `lockstep urban sun`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

struct SunlightOptions {
  CityFiles city;
  std::string date;                                   ///< "2026-03-21"
  std::string from, to;                               ///< or the first and the last day
  std::optional<double> latitude_deg, longitude_deg;  ///< else the raster's centre
  std::optional<double> utc_offset_h;                 ///< of the days; else the whole hours of the longitude
  int minutes = 10;                                   ///< between two positions of the sun
  double least_altitude_deg = 0;                      ///< a lower sun does not count
  RayOptions rays;
  TileOptions tiles;
  OutputOptions output;
};

struct SunlightResult : RunResult {
  std::string from, to;
  int64_t days = 0, positions = 0;  ///< of the sun, above the least altitude
  double possible_h = 0;            ///< on an open field, all days together
  double latitude_deg = 0, longitude_deg = 0, utc_offset_h = 0;
};

/// Casts shadows from the sun of the middle of each part of a day (stage "urban.sun") and adds up the parts in which a pixel
/// sees it: sun_hours, past plants too, and sun_hours_buildings, past buildings and terrain alone. Missing pixels are NaN.
SunlightResult run(Context& context, const SunlightOptions& options);

void describe(Schema<SunlightOptions>& s);

}  // namespace lockstep::urban
