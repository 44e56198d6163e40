// Radiation of a cloudless day and what the sun's course gives: scalars in f64, once a step on the host.
#pragma once

#include "io/series/civil_time.hpp"
#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Where the weather is measured.
struct Site {
  double latitude_deg = 0, longitude_deg = 0, elevation_m = 0, utc_offset_h = 0;
};

/// The sun at a local time, as published: terrestrial time taken as universal time, refraction of 10 °C and
/// 1010 hPa.
SunPosition sun_at(const Site& site, io::CivilMinutes local, double extra_minutes = 0);

/// Highest altitude of the day (degrees), from a scan of 15 minutes.
double highest_altitude(const Site& site, io::CivilMinutes local);

/// Sunrise in hours of true solar time from the declination −23.45° cos(2π(doy + 10)/365).
double sunrise_hour(int day_of_year, double latitude_deg);

/// Square of mean over present distance between Earth and sun (J. Spencer 1971): what scales the solar constant.
/// Named "distance" in the published programs.
double sun_distance_factor(int day_of_year);

/// Which row of G. Smith's (1966) table of water vapour a latitude takes. `southern_row_one`: below the equator
/// always the first, as UMEP evaluates it; otherwise the band of |latitude|, seasons turned by half a year.
enum class LatitudeBands { by_latitude, southern_row_one };

struct ClearSky {
  double global = 0;      ///< I0, W/m²
  double correction = 1;  ///< 0.1473 ln(altitude°) + 0.3454, for low suns
  /// On a plane that faces the sun, through the air mass of D. Rogers (1967), 35 / √(1224 cos² Z + 1), W/m². The
  /// published programs have another factor cos Z in it, so that `global` loses nothing where the sun is low.
  double beam = 0;
};
/// T. Crawford & C. Duchon (1999). `pressure_hpa` NaN: 1013.
ClearSky clear_sky(double zenith_deg, int day_of_year, double ta_c, double rh_percent, double pressure_hpa,
                   double latitude_deg, LatitudeBands bands);

/// 1 for a cloudless sky: global / I0 + 1 − correction, at most 1; 1 where that is no number.
double clearness_index(double global, const ClearSky& clear);

/// Share of what reaches the top of the atmosphere: global / (1370 cos Z D).
double clearness_ratio(double global, double zenith_deg, int day_of_year);

struct BeamAndSky {
  double direct = 0;   ///< on a plane that faces the sun, W/m²
  double diffuse = 0;  ///< on the horizontal, W/m²
};
/// D. Reindl, W. Beckman, J. Duffie (1990), with air temperature and humidity.
BeamAndSky split_global(double global, double altitude_deg, double clearness_ratio, double ta_c,
                        double rh_percent);

/// Emissivity of the cloudless sky (A. Prata 1996).
double sky_emissivity(double ta_c, double rh_percent);

}  // namespace lockstep::urban
