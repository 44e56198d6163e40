// Weather and sun of one time step: all that changes from step to step, as scalars in f64.
#pragma once

#include <limits>

namespace lockstep::urban {

/// Times are local standard time; the sun's position is that in the middle of the interval.
struct StepForcing {
  double sun_altitude_deg = 0;      ///< at or below 0: night
  double sun_azimuth_deg = 0;       ///< clockwise from the grid's north, 0 … 360
  double day_max_altitude_deg = 0;  ///< highest sun of the day
  double sunrise_h = 6;             ///< SNUP of the formula, hours
  double day_fraction = 0;          ///< time of day, 0 … 1, of the middle of the interval
  int day_of_year = 1;
  double step_days = 1.0 / 24;  ///< length of the interval

  double air_c = 20;
  double humidity_percent = 50;
  double wind_m_s = 1;
  double pressure_kpa = std::numeric_limits<double>::quiet_NaN();

  double global_w_m2 = 0;                              ///< on the horizontal plane
  double beam_w_m2 = 0;                                ///< direct, on a plane towards the sun
  double diffuse_w_m2 = 0;                             ///< on the horizontal plane
  double clear_w_m2 = 0;                               ///< clear sky, global, horizontal (Crawford & Duchon)
  double clear_correction = 0;                         ///< corr of the clearness index
  double clear_beam_w_m2 = 0, clear_diffuse_w_m2 = 0;  ///< Reindl's parts of clear_w_m2, at Kt = 1

  double clearness = 1;         ///< CI, at most 1; at night by Constants::night_clearness
  double sky_emissivity = 0.8;  ///< esky of the clear sky
  /// Measured longwave from the sky (W/m²); NaN: by the formula.
  double ldown_w_m2 = std::numeric_limits<double>::quiet_NaN();

  double canopy_transmissivity = 0.03;  ///< ψ of the season
  double water_c = 20;                  ///< mean air temperature of the 24 hours around

  bool day() const { return sun_altitude_deg > 0; }
};

}  // namespace lockstep::urban
