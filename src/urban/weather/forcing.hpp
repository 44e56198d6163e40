// From a table of weather to what the radiation model takes a step.
#pragma once

#include <span>
#include <vector>

#include "io/series/weather/weather.hpp"
#include "urban/radiation/constants.hpp"
#include "urban/radiation/step/forcing.hpp"
#include "urban/weather/solar.hpp"

namespace lockstep::urban {

/// Which clock the daily course of surface temperature follows: the stamp's, as published, or true solar time of
/// the interval's middle.
enum class SurfaceClock { stamp, solar };

struct WeatherRules {
  NightClearness night = NightClearness::carry;
  LatitudeBands bands = LatitudeBands::by_latitude;
  SurfaceClock clock = SurfaceClock::solar;
  bool use_longwave = true;          ///< the table's Ldown, where it has one
  bool beam_below_clear_sky = true;  ///< the beam of a split global radiation is at most the clear sky's
  double leaf_on = 0.03, leaf_off = 0.5;
  /// Leaves between these days, without them; first after last: over the turn of the year.
  int leaf_first_day = 97, leaf_last_day = 300;
  bool evergreen = false;
  bool horizontal_direct = false;  ///< the table's direct radiation is that on the horizontal
  int substeps = 1;                ///< equal parts of an interval, each with its own sun
};
WeatherRules weather_rules(Preset preset, const Constants& constants);
/// Leaf days by latitude: half a year later in the south, leaves on all days between the tropics.
void set_leaves_by_latitude(WeatherRules& rules, double latitude_deg);
/// Leaf days as given, both included.
void set_leaves(WeatherRules& rules, int first_day, int last_day);
inline constexpr double kTropic = 23.44;  ///< degrees

struct WeatherStep {
  io::CivilMinutes time = 0;  ///< local, the interval's end
  StepForcing forcing;        ///< with the sun of the middle
  /// Of equal length, in order; empty: the interval as a whole, also where the sun is down throughout.
  std::vector<StepForcing> substeps = {};

  std::span<const StepForcing> parts() const {
    return substeps.empty() ? std::span(&forcing, 1) : std::span<const StepForcing>(substeps);
  }
};

/// One step a row of `rows` (without gaps); days are completed from `whole`, the same file before a part was
/// chosen. `convergence_deg`: of the grid's north, clockwise from true north. Throws InputError, naming the
/// line, for shortwave radiation while the sun is well below the horizon.
std::vector<WeatherStep> make_forcing(const io::WeatherTable& rows, const io::WeatherTable& whole,
                                      const Site& site, double convergence_deg, const WeatherRules& rules);

/// Steps of a run, and those before it whose warmth its first hours still have.
struct WeatherSeries {
  std::vector<WeatherStep> warm_up, steps;
};
/// As make_forcing, after the rows of `whole` that come before without a gap: what an hour gets does not depend on the
/// row that a run begins with.
WeatherSeries make_series(const io::WeatherTable& rows, const io::WeatherTable& whole, const Site& site,
                          double convergence_deg, const WeatherRules& rules);

/// The same of the sun alone at the middle of an interval.
SunPosition sun_of_interval(const Site& site, io::CivilMinutes end, int64_t step_min);

/// Sets the radiation of a clear sky under the sun and air of a step, as a whole and in parts.
ClearSky set_clear_sky(StepForcing& forcing, double latitude_deg, LatitudeBands bands);

bool has_leaves(int day_of_year, const WeatherRules& rules);

}  // namespace lockstep::urban
