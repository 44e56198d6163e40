// Constants of the radiation model, and the points where published programs differ from each other and from
// their own papers: each a plain field, each preset one set of them. docs/urban.md describes each one.
#pragma once

#include <vector>

#include "lockstep/urban/series.hpp"

namespace lockstep::urban {

/// Perez, Seals & Michalsky 1993 as printed, or as UMEP evaluates it (brackets of the clearness and of the air
/// mass, an extra factor in d of the first bin).
enum class PerezFormula { perez93, umep_compat };
/// A ray over the ground that leaves the raster sees its last pixel on, or nothing more.
enum class RasterEdge { keep, drop };
/// Which wall pixels count as sunlit ground neighbours: those lit over their whole height, or in any part.
enum class SunlitWall { whole, any };
/// When the excess temperature of the ground is held at 0 or more.
enum class GroundClamp { never, with_land_cover, always };
/// Clearness index at night: the day's value just after sunrise (1 without), or the last of the day.
enum class NightClearness { sunrise, carry };
/// Shadow fraction of walls near sunrise: by the formula always, or 1 below 3°.
enum class LowSun { formula, shaded };
/// Water: as any other ground, or at the mean air temperature of the 24 hours around, by day and night, in sun and shade.
enum class WaterRule { as_ground, daily_mean };

struct Constants {
  double sigma = 5.670374419e-8;   ///< W/(m² K⁴)
  double kelvin = 273.15;          ///< of air and surfaces
  double kelvin_tmrt = 273.15;     ///< subtracted from the mean radiant temperature at the end
  double absorption_short = 0.70;  ///< of the body
  double absorption_long = 0.97;
  double tmrt_lowest_c = -1e30;  ///< the result is held within
  double tmrt_highest_c = 1e30;
  PerezFormula perez = PerezFormula::perez93;
  bool perez_guards = true;  ///< even sky below 3° of sun, under 10 W/m², and where a luminance is negative
  RasterEdge edge = RasterEdge::keep;
  SunlitWall sunlit_wall = SunlitWall::whole;
  GroundClamp ground_clamp = GroundClamp::always;
  bool before_sunrise_cold = true;  ///< no excess temperature before the sunrise of the formula
  double bare_tstart_k = -3.41;     ///< Tstart without a land-cover grid
  NightClearness night_clearness = NightClearness::carry;
  LowSun low_sun = LowSun::formula;
  WaterRule water = WaterRule::daily_mean;
  bool seasonal_canopy = true;  ///< sky view through plants by the season's transmissivity, else by `leaf_on`
  double leaf_on = 0.03, leaf_off = 0.5;  ///< transmissivity of canopies
  int leaf_first_day = 97, leaf_last_day = 300;
  bool beam_on_box_sides = true;     ///< direct sun on a box under an anisotropic sky
  bool albedo_on_beam_only = false;  ///< sunlit walls reflect diffuse light unattenuated, as both programs do
  /// Ground, walls and plants reflect what they do not absorb of all longwave that falls on them, and the parts of a side
  /// under an isotropic sky add up to 1: an enclosure of one temperature gives that temperature.
  bool closed_longwave = true;
  /// Patches have the integrals of their cosines, and their longwave adds up to the sky's emissivity; else the
  /// cosines of their centres.
  bool exact_patches = true;
  bool even_sides = true;          ///< half-sky factors are relative to those of flat ground
  double sitting_curved = 0.2122;  ///< share of a sitting body's curved side; 2 up + 2 side + π/2 curved = 1
  bool delay_in_windows = false;  ///< the delay of warmth takes over a state every 59 minutes, not every step
  bool even_polar_day =
      true;  ///< where the sun does not set, surfaces cool until midnight to what they start from
  bool holes_are_edges =
      true;  ///< missing pixels end the view of the ground as the raster's edge does; else as walls
  /// Reach of the ground view over the surface, from a body of this height: nearest metres and all metres.
  double near_reach_m = 1.0, far_reach_m = 22.0;
  bool reach_times_pixel = false;  ///< reach in pixels is metres times the pixel size, not divided by it
};

Constants constants_of(Preset preset);

/// Surface of one land-cover class. Excess temperature over the air: (tgk · highest sun of the day (°) +
/// tstart) at its highest, reached at tmax_h o'clock.
struct SurfaceRow {
  int code = 0;
  double albedo = 0.15, emissivity = 0.95;
  double tgk = 0.37, tstart_k = -3.41, tmax_h = 15;
};
struct WallSurface {
  double albedo = 0.20, emissivity = 0.90;
  double tgk = 0.37, tstart_k = -3.41, tmax_h = 15;
};

inline constexpr int kWaterCode = 7;
inline constexpr int kBuildingCode = 2;
/// 0 cobble, 1 dark asphalt, 2 roofs, 5 grass, 6 bare soil, 7 water (UMEP).
std::vector<SurfaceRow> standard_land_cover();

/// Shares of a body's surface that face up (and down), each side, and of the curved side.
struct BodyFactors {
  double up, side, curved;
  double height_m;
};
BodyFactors body_factors(Posture posture, const Constants& constants);

}  // namespace lockstep::urban
