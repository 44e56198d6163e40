// From a table of weather to what the radiation model takes a step.
#pragma once

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
  bool use_longwave = true;  ///< the table's Ldown, where it has one
  double leaf_on = 0.03, leaf_off = 0.5;
  int leaf_first_day = 97, leaf_last_day = 300;  ///< first after last: leaves over the turn of the year
  bool evergreen = false;
};
WeatherRules weather_rules(Preset preset, const Constants& constants);

struct WeatherStep {
  io::CivilMinutes time = 0;  ///< local, the interval's end
  StepForcing forcing;
};

/// One step a row of `rows` (without gaps); days are completed from `whole`, the same file before a part was
/// chosen. `convergence_deg`: of the grid's north, clockwise from true north. Throws InputError, naming the
/// line, for shortwave radiation while the sun is well below the horizon.
std::vector<WeatherStep> make_forcing(const io::WeatherTable& rows, const io::WeatherTable& whole,
                                      const Site& site, double convergence_deg, const WeatherRules& rules);

/// The same of the sun alone at the middle of an interval.
SunPosition sun_of_interval(const Site& site, io::CivilMinutes end, int64_t step_min);

bool has_leaves(int day_of_year, const WeatherRules& rules);

}  // namespace lockstep::urban
