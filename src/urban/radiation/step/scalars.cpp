#include "urban/radiation/step/scalars.hpp"

#include <algorithm>
#include <cmath>

#include "urban/angles.hpp"
#include "urban/radiation/sky_luminance.hpp"
#include "urban/sky/svf_weights.hpp"

namespace lockstep::urban {
namespace {

double sine(double deg) { return std::sin(deg * kRadian); }
double cosine(double deg) { return std::cos(deg * kRadian); }

double emissivity_with_clouds(const StepForcing& f, double sigma_t4) {
  if (!std::isnan(f.ldown_w_m2)) return f.ldown_w_m2 / sigma_t4;  // above 1 under warmer air
  return f.clearness < 0.95 ? f.clearness * f.sky_emissivity + 1 - f.clearness : f.sky_emissivity;
}

}  // namespace

GroundReach ground_reach(const RadiationOptions& options, double pixel_size_m) {
  const Constants& c = options.constants;
  const double taller =
      body_factors(options.posture, c).height_m / body_factors(Posture::standing, c).height_m;
  const double steps = c.reach_times_pixel ? pixel_size_m : 1 / pixel_size_m;
  // Pixels may be as small as any positive number.
  const auto whole = [](double x) { return static_cast<int>(std::clamp(std::nearbyint(x), 1.0, 1e9)); };
  const GroundReach reach{whole(std::max(1.0, std::nearbyint(c.near_reach_m * taller)) * steps),
                          whole(c.far_reach_m * taller * steps)};
  return {std::min(reach.near, reach.far), reach.far};
}

double excess_temperature(double tgk, double tstart_k, double tmax_h, bool clamp, const StepForcing& f,
                          const Constants& constants) {
  if (!f.day()) return 0;
  const double rise = f.sunrise_h / 24;
  if (constants.before_sunrise_cold && f.day_fraction < rise) return 0;
  double length = tmax_h / 24 - rise;
  if (length <= 0) length = 1;
  const double amplitude = tgk * f.day_max_altitude_deg + tstart_k;
  double course = (f.day_fraction - rise) / length;
  if (constants.even_polar_day && rise <= 0 && course > 1)
    course = 1 + (f.day_fraction - length) / (1 - length);  // 2, a sine of 0, at midnight
  double excess = amplitude * std::sin(course * kPi / 2);
  const double clear = f.clear_beam_w_m2 * sine(f.sun_altitude_deg) + f.clear_diffuse_w_m2;
  const double share = f.global_w_m2 / clear + (1 - f.clear_correction);
  excess *= share < 1 ? share : 1;  // also where the clear sky gives nothing
  return clamp ? std::max(excess, 0.0) : excess;
}

std::vector<double> ground_excess(const StepForcing& f, const RadiationOptions& options, bool covers) {
  const Constants& c = options.constants;
  const bool clamp =
      c.ground_clamp == GroundClamp::always || (c.ground_clamp == GroundClamp::with_land_cover && covers);
  if (!covers)
    return {excess_temperature(options.bare.tgk, c.bare_tstart_k, options.bare.tmax_h, clamp, f, c)};
  std::vector<double> excess;
  for (const SurfaceRow& row : options.land_cover) {
    excess.push_back(keeps_temperature(row, c)
                         ? f.water_c - f.air_c
                         : excess_temperature(row.tgk, row.tstart_k, row.tmax_h, clamp, f, c));
  }
  return excess;
}

bool keeps_temperature(const SurfaceRow& row, const Constants& constants) {
  return row.code == kWaterCode && constants.water == WaterRule::daily_mean;
}

double wall_excess(const StepForcing& f, const RadiationOptions& options) {
  const WallSurface& wall = options.wall;
  return excess_temperature(wall.tgk, wall.tstart_k, wall.tmax_h, true, f, options.constants);
}

DelayStep advance(WaveDelay& clock, double step_days, bool in_windows) {
  constexpr double kWindow = 59.0 / 1440, kRate = 33.27;
  DelayStep step{clock.first, !in_windows, 0};
  if (!in_windows) {
    step.weight = std::exp(-kRate * step_days);
  } else if (clock.time_added_days >= kWindow) {
    step.keep = true;
    step.weight = std::exp(-kRate * clock.time_added_days);
    clock.time_added_days = step_days > kWindow ? step_days : 0;
  } else {
    clock.time_added_days += step_days;
    step.weight = std::exp(-kRate * clock.time_added_days);
  }
  clock.first = false;
  return step;
}

StepScalars step_scalars(const StepForcing& f, const RadiationOptions& options) {
  const Constants& c = options.constants;
  StepScalars s;
  s.day = f.day();
  s.air_k = f.air_c + c.kelvin;
  s.sigma_t4 = c.sigma * std::pow(s.air_k, 4);
  s.sky_emissivity = emissivity_with_clouds(f, s.sigma_t4);
  s.side_emissivity =
      std::isnan(f.ldown_w_m2) ? f.sky_emissivity * f.clearness + 1 - f.clearness : s.sky_emissivity;
  s.wall_emissivity = options.wall.emissivity;
  s.wall_albedo = options.wall.albedo;
  s.wall_excess_k = wall_excess(f, options);
  s.emitted_lit_factor = c.sigma * s.wall_emissivity;
  s.wall_longwave = s.wall_emissivity * s.sigma_t4;
  s.wall_lit_longwave = s.emitted_lit_factor * std::pow(s.air_k + s.wall_excess_k, 4);
  if (c.even_sides) {
    s.side_scale = flat_half_skies(sky_division(options.view.patches, options.view.edges));
    for (double& scale : s.side_scale) scale = 1 / scale;
  }
  s.canopy = f.canopy_transmissivity;
  s.view_canopy = c.seasonal_canopy ? f.canopy_transmissivity : c.leaf_on;
  if (!s.day) return s;

  const double altitude = f.sun_altitude_deg, azimuth = f.sun_azimuth_deg;
  s.sin_altitude = sine(altitude);
  s.cos_altitude = cosine(altitude);
  s.tan_zenith = s.cos_altitude / s.sin_altitude;
  s.beam = f.beam_w_m2;
  s.diffuse = f.diffuse_w_m2;
  s.global = f.global_w_m2;
  s.wall_shadow_one = c.low_sun == LowSun::shaded && altitude < 3;
  const double scattered = c.albedo_on_beam_only ? s.diffuse : s.wall_albedo * s.diffuse;
  s.wall_lit_shortwave = (s.wall_albedo * s.beam * s.cos_altitude + scattered * 0.5) / kPi;
  s.wall_shaded_shortwave = s.wall_albedo * s.diffuse * 0.5 / kPi;
  const bool cylinder = options.body == Body::cylinder;
  if (cylinder) s.curved_beam = s.cos_altitude;
  const double toward[4] = {azimuth, azimuth - 90, azimuth - 180, azimuth - 270};
  const bool box_beam = !cylinder && (!has_patches(options.sky) || c.beam_on_box_sides);
  for (size_t k = 0; k < 4; ++k) s.plane_beam[k] = std::max(0.0, s.cos_altitude * sine(toward[k]));
  if (box_beam) s.face_beam = s.plane_beam;
  // A wall seen to the east is sunlit from the west, and so on around.
  const bool facing[4] = {azimuth > 180, azimuth <= 90 || azimuth > 270, azimuth <= 180,
                          azimuth > 90 && azimuth <= 270};
  for (size_t k = 0; k < 4; ++k)
    if (facing[k]) s.wall_sun[k] = std::max(0.0, sine(toward[(k + 2) % 4]));
  return s;
}

StepSky step_sky(const RadiationOptions& options) {
  SkyDivision division = sky_division(options.view.patches, options.view.edges);
  std::vector<PatchCosines> cosines = patch_cosines(division, options.constants.exact_patches);
  return {std::move(division), std::move(cosines)};
}

std::vector<PatchStep> patch_steps(const StepSky& step_sky, const StepForcing& f, const StepScalars& s,
                                   const RadiationOptions& options) {
  const Constants& c = options.constants;
  const auto& [sky, cosines] = step_sky;
  const PerezInput input{f.sun_altitude_deg, f.sun_azimuth_deg, f.diffuse_w_m2, f.beam_w_m2, f.day_of_year};
  std::vector<double> luminance(sky.patches.size(), 0.0), dullness;
  double weight = 0, dull = 0;
  if (s.day) {
    luminance = row_of(options.sky).luminance(sky.patches, input, c);
    for (size_t k = 0; k < luminance.size(); ++k) weight += luminance[k] * cosines[k].down;
  }
  // 1 − emissivity of a patch over that of the sky.
  for (size_t k = 0; k < sky.patches.size(); ++k) {
    dullness.push_back(std::exp(0.308 * (1.7 - 1 / sine(sky.patches[k].altitude_deg))));
    dull += dullness[k] * cosines[k].down / kPi;
  }
  if (!c.exact_patches) dull = 1;
  std::vector<PatchStep> patches;
  for (size_t k = 0; k < sky.patches.size(); ++k) {
    const double altitude = sky.patches[k].altitude_deg, azimuth = sky.patches[k].azimuth_deg;
    const double emissivity = 1 - (1 - s.sky_emissivity) * (dullness[k] / dull);
    const double apart = std::abs(azimuth - f.sun_azimuth_deg);
    const bool faces_sun = s.day && apart > 90 && apart < 270;
    PatchStep p{};
    p.luminance = luminance[k];
    p.shortwave = s.day && weight != 0 ? luminance[k] * s.diffuse / weight : 0.0;
    p.longwave = emissivity * s.sigma_t4 / kPi;
    p.lit_longwave = (faces_sun ? s.wall_lit_longwave : s.wall_longwave) / kPi;
    const double low = s.day ? std::min(0.0, 2 * cosine(apart) / s.tan_zenith) : 0.0;
    p.threshold = altitude >= 90 ? 1e30 : std::tan(altitude * kRadian) - low;
    p.side = cosines[k].side;
    p.down = cosines[k].down;
    p.faces = cosines[k].faces;
    patches.push_back(p);
  }
  return patches;
}

}  // namespace lockstep::urban
