// Hours of sunlight on a day or in a period under a clear sky, on pixels and facades, with and without plants, and grades
// of rules for sunlight, as in `lockstep urban sun`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Rules for the duration of sunlight; sources: docs/urban-results.md.
enum class SunRule : uint8_t {
  none,
  en17037,
  din5034_winter,
  din5034_equinox,
  tno_light,
  tno_strict,
  the_hague,
  bre209,
  solklart
};
std::span<const Choice<SunRule>> choices(SunRule);

struct SunlightOptions {
  CityFiles city;
  std::string date;              ///< one day: "2026-03-21"
  std::string from, to;          ///< instead of `date`: the first and the last day
  SunRule rule = SunRule::none;  ///< instead of `date`: a rule, which determines the days
  std::optional<double> latitude_deg, longitude_deg;  ///< default: the centre of the raster
  std::optional<double> utc_offset_h;  ///< defines the days; default: the offset by longitude in whole hours
  int minutes = 10;                    ///< between two positions of the sun
  std::optional<double> least_altitude_deg;  ///< a lower sun does not count; default: that of the rule, or 0
  bool facades = false;                      ///< also compute the hours of walls
  double floor_height_m = 3;                 ///< approximate height of the bands of a wall
  bool include_roofs = false;  ///< in statistics, shares and pictures; default: with a DEM, only the ground
  WallOptions walls;
  RayOptions rays;
  TileOptions tiles;
  OutputOptions output;
};

/// The walls of the city. A wall is that at a pixel next to a building; a band is its part between two heights.
struct FacadeResult {
  std::filesystem::path file;  ///< layers `facades` (a line for each wall) and `bands`
  int64_t walls = 0, bands = 0;
  double area_m2 = 0;
  double hours = 0, hours_buildings = 0;  ///< means over the area: with plants, and without plants
};

/// The percentages of the ground and of the facades that have a grade of a rule. Members with `_buildings` are without
/// plants. NaN: there is no ground or no facade.
struct SunGrade {
  std::string label;
  double hours = 0;  ///< least hours of the grade
  double ground_percent = 0, ground_percent_buildings = 0;
  double facade_percent = 0, facade_percent_buildings = 0;
};

struct RuleResult {
  std::string name, source;
  std::vector<std::string> days;
  double least_altitude_deg = 0;
  std::vector<SunGrade> grades;  ///< grade 0: the rule is not fulfilled
};

struct SunlightResult : RunResult {
  std::string from, to;
  int64_t days = 0, positions = 0;  ///< of the sun, above the least altitude
  double possible_h =
      0;  ///< hours on an open field over all days; with a rule, on the day with the fewest hours
  double latitude_deg = 0, longitude_deg = 0, utc_offset_h = 0;
  std::optional<FacadeResult> facades;
  std::optional<RuleResult> rule;
};

/// Computes the shadows for the sun in the middle of each part of a day (stage "urban.sun") and adds the parts in which a
/// pixel sees the sun. Writes the grids sun_hours, with buildings and plants, and sun_hours_buildings, with buildings and
/// terrain only. Missing pixels are NaN. With a DEM, statistics and pictures cover the ground, which the grid `ground`
/// defines. With a rule, the hours are those of the day with the fewest hours, and the grids sun_grade and
/// sun_grade_buildings contain the grades. With facades, facades.gpkg contains the same for the middle of each band of
/// each wall. Throws InputError for invalid files and options.
SunlightResult run(Context& context, const SunlightOptions& options);

void describe(Schema<SunlightOptions>& s);

}  // namespace lockstep::urban
