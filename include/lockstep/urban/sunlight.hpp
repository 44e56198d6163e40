// Hours of sun on a day or in a period, without weather, on pixels and facades, with and without plants, and grades
// of daylight rules. `lockstep urban sun`.
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
  std::string date;                                   ///< "2026-03-21"
  std::string from, to;                               ///< or the first and the last day
  SunRule rule = SunRule::none;                       ///< or the days of a rule
  std::optional<double> latitude_deg, longitude_deg;  ///< default: the raster's centre
  std::optional<double> utc_offset_h;        ///< of the days; default: the whole hours of the longitude
  int minutes = 10;                          ///< between two positions of the sun
  std::optional<double> least_altitude_deg;  ///< a lower sun does not count; default: that of the rule, or 0
  bool facades = false;                      ///< hours of walls too
  double floor_height_m = 3;                 ///< approximate height of the bands of a facade
  bool include_roofs = false;  ///< in statistics, shares and pictures; default: with a DEM, only the ground
  WallOptions walls;
  RayOptions rays;
  TileOptions tiles;
  OutputOptions output;
};

/// Walls of the city: a band is a part of a wall between two heights, a wall a pixel next to a building.
struct FacadeResult {
  std::filesystem::path file;  ///< layers `facades` (a line for each wall) and `bands`
  int64_t walls = 0, bands = 0;
  double area_m2 = 0;
  double hours = 0, hours_buildings = 0;  ///< means over the area
};

/// The part of the ground and of the facades that has a grade of a rule, in percent; buildings: without plants. NaN: nothing of
/// that kind.
struct SunGrade {
  std::string label;
  double hours = 0;  ///< that it begins with
  double ground_percent = 0, ground_percent_buildings = 0;
  double facade_percent = 0, facade_percent_buildings = 0;
};

struct RuleResult {
  std::string name, source;
  std::vector<std::string> days;
  double least_altitude_deg = 0;
  std::vector<SunGrade> grades;  ///< 0: not fulfilled
};

struct SunlightResult : RunResult {
  std::string from, to;
  int64_t days = 0, positions = 0;  ///< of the sun, above the least altitude
  double possible_h = 0;  ///< on an open field, all days together; of a rule the day with the fewest
  double latitude_deg = 0, longitude_deg = 0, utc_offset_h = 0;
  std::optional<FacadeResult> facades;
  std::optional<RuleResult> rule;
};

/// Casts shadows from the sun in the middle of each part of a day (stage "urban.sun") and adds the parts in which a
/// pixel sees it: sun_hours, past buildings and plants, and sun_hours_buildings, past buildings and terrain only.
/// Missing pixels are NaN. With a DEM, statistics and pictures cover the ground, given by the grid `ground`. With a rule
/// the hours are those of its day with the fewest, and sun_grade and sun_grade_buildings the grades. With facades the
/// same for the middle of each band of each wall: facades.gpkg.
SunlightResult run(Context& context, const SunlightOptions& options);

void describe(Schema<SunlightOptions>& s);

}  // namespace lockstep::urban
