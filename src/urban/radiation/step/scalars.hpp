// Scalars of a step, in f64, and the treatment of each patch of the sky.
#pragma once

#include <array>
#include <vector>

#include "urban/radiation/model.hpp"
#include "urban/radiation/perez.hpp"
#include "urban/radiation/step/forcing.hpp"

namespace lockstep::urban {

/// Rays of the ground view: azimuths 5, 25, … 345.
inline constexpr int kGroundRays = 18;
constexpr double ground_azimuth_deg(int ray) { return 5.0 + 20.0 * ray; }

/// Steps of the ground view: near and far.
struct GroundReach {
  int near = 1, far = 1;
};
GroundReach ground_reach(const RadiationOptions& options, double pixel_size_m);

/// Excess temperature (K) of a surface over the air, sunlit.
double excess_temperature(double tgk, double tstart_k, double tmax_h, bool clamp, const StepForcing& forcing,
                          const Constants& constants);

/// Excess of each row of the land cover, or of the bare ground alone; of water by day and night.
std::vector<double> ground_excess(const StepForcing& forcing, const RadiationOptions& options, bool covers);
/// Water that keeps its temperature in sun and shade.
bool keeps_temperature(const SurfaceRow& row, const Constants& constants);
double wall_excess(const StepForcing& forcing, const RadiationOptions& options);

/// The delay of warmth (TsWaveDelay): X1 ← X on the first step of a day, then
/// result = X (1 − weight) + X1 weight, kept as X1 if `keep`.
struct WaveDelay {
  bool first = true;
  double time_added_days = 0;
};
struct DelayStep {
  bool first, keep;
  double weight;
};
/// Advances the clock by one step of the day.
/// `in_windows`: as published, the state is taken over after 59 minutes; else at every step.
DelayStep advance(WaveDelay& clock, double step_days, bool in_windows = true);

/// The sky's patches, and what bodies see of them.
struct StepSky {
  SkyDivision division;
  std::vector<PatchCosines> cosines;
};
StepSky step_sky(const RadiationOptions& options);

/// A patch of the sky in one step. Radiances W/(m² sr); weights sr.
struct PatchStep {
  double luminance;             ///< share of the sky's diffuse light
  double shortwave;             ///< radiance of the open sky
  double longwave;              ///< radiance of the open sky
  double lit_longwave;          ///< of a wall in this direction where it is sunlit
  double threshold;             ///< a wall in this direction is sunlit where tan asvf is below it
  double side, down;            ///< solid angle · cos, · sin of the altitude
  std::array<double, 4> faces;  ///< solid angle · cos altitude · cos to the east, south, west, north face
};

/// All that is the same for every pixel.
struct StepScalars {
  bool day = false;
  double sigma_t4 = 0;  ///< σ Ta⁴
  double air_k = 0;
  double sin_altitude = 0, cos_altitude = 0, tan_zenith = 0;
  double beam = 0, diffuse = 0, global = 0;
  double sky_emissivity = 0;     ///< of the sky with its clouds, for Ldown and patches
  double side_emissivity = 0;    ///< the same for the isotropic sides
  double wall_longwave = 0;      ///< exitance of a shaded wall, W/m²
  double wall_lit_longwave = 0;  ///< of a sunlit one
  double wall_emissivity = 0, wall_albedo = 0;
  double canopy = 0;                                         ///< ψ of shadows
  double view_canopy = 0;                                    ///< ψ of the sky view
  bool wall_shadow_one = false;                              ///< F_sh is 1
  double wall_lit_shortwave = 0, wall_shaded_shortwave = 0;  ///< radiances towards the body
  /// Beam on planes that face east, south, west and north: factor of beam · shadow.
  std::array<double, 4> plane_beam{};
  /// Beam on the faces of a box, the same. 0 of a cylinder.
  std::array<double, 4> face_beam{};
  double curved_beam = 0;  ///< the same on a cylinder's side
  /// Sine of the sun's height over each isotropic wall that faces a side, or below 0 where it does not.
  std::array<double, 4> wall_sun{-1, -1, -1, -1};
  double wall_excess_k = 0;
  double emitted_lit_factor = 0;                 ///< σ · wall emissivity
  std::array<double, 4> side_scale{1, 1, 1, 1};  ///< of half-sky factors east, south, west, north
};
StepScalars step_scalars(const StepForcing& forcing, const RadiationOptions& options);
std::vector<PatchStep> patch_steps(const StepSky& sky, const StepForcing& forcing, const StepScalars& scalars,
                                   const RadiationOptions& options);

}  // namespace lockstep::urban
