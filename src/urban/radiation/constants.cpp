#include "urban/radiation/constants.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::urban {

Constants constants_of(Preset preset) {
  Constants c;
  if (preset == Preset::corrected) return c;
  c.sigma = 5.67051e-8;
  c.water = WaterRule::as_ground;
  c.albedo_on_beam_only = true;
  c.closed_longwave = c.exact_patches = c.even_sides = false;
  c.sitting_curved = 0.20;
  c.delay_in_windows = true;
  c.even_polar_day = c.holes_are_edges = false;
  if (preset == Preset::umep) {
    c.kelvin_tmrt = 273.2;
    c.absorption_long = 0.95;
    c.perez = PerezFormula::umep_compat;
    c.perez_guards = false;
    c.ground_clamp = GroundClamp::with_land_cover;
    c.before_sunrise_cold = false;
    c.bare_tstart_k = 3.41;
    c.night_clearness = NightClearness::sunrise;
    c.seasonal_canopy = false;
    c.beam_on_box_sides = false;
    return c;
  }
  c.tmrt_lowest_c = -50;
  c.tmrt_highest_c = 80;
  c.edge = RasterEdge::drop;
  c.sunlit_wall = SunlitWall::any;
  c.low_sun = LowSun::shaded;
  c.leaf_first_day = 100;
  c.near_reach_m = 2;
  c.far_reach_m = 35;
  c.reach_times_pixel = true;
  return c;
}

std::vector<SurfaceRow> standard_land_cover() {
  return {{0, 0.20, 0.95, 0.37, -3.41, 15}, {1, 0.18, 0.95, 0.58, -9.78, 15},
          {2, 0.18, 0.95, 0.58, -9.78, 15}, {5, 0.16, 0.94, 0.21, -3.38, 14},
          {6, 0.25, 0.94, 0.33, -3.01, 14}, {7, 0.05, 0.98, 0.00, 0.00, 12}};
}

BodyFactors body_factors(Posture posture, const Constants& constants) {
  if (posture == Posture::sitting) return {0.166666, 0.166666, constants.sitting_curved, 0.75};
  return {0.06, 0.22, 0.28, 1.1};
}

}  // namespace lockstep::urban
