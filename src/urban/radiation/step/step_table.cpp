#include "urban/radiation/step/step_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "urban/rays/steps.hpp"
#include "urban/sun/shadows.hpp"

namespace lockstep::urban {

double longest_ray_m(const City& city, const RadiationOptions& options) {
  constexpr double lowest_sun_deg = 3.0;
  const double reach = city.relief_m() / std::tan(lowest_sun_deg * std::numbers::pi / 180);
  return std::max(std::min(reach, options.view.rays.max_reach_m), city.pixel_size_m);
}

namespace {

/// Patches of one word of states that differ in their azimuth alone.
struct PatchRun {
  size_t first, count;
};

/// A cylinder's side sees all azimuths alike; a box has faces, so that each patch is a run of its own.
std::vector<PatchRun> patch_runs(const SkyDivision& sky, Body body) {
  std::vector<PatchRun> runs;
  for (size_t k = 0; k < sky.patches.size(); ++k) {
    const bool same =
        k % 16 != 0 && body == Body::cylinder && sky.band_of_patch[k] == sky.band_of_patch[k - 1];
    if (same)
      ++runs.back().count;
    else
      runs.push_back({k, 1});
  }
  return runs;
}

size_t padded_patches(const SkyDivision& sky) { return (sky.patches.size() + 15) / 16 * 16; }

}  // namespace

int32_t step_table_runs(const SkyDivision& sky, Body body) {
  return static_cast<int32_t>(patch_runs(sky, body).size());
}

int64_t step_table_size(const SkyDivision* sky, Body body) {
  if (!sky) return kernels::kFirstPatch;
  constexpr int64_t word = 16 * kernels::kPatchWords + kernels::kWordWords;
  return kernels::kFirstPatch + word * static_cast<int64_t>(padded_patches(*sky) / 16) +
         kernels::kRunWords * step_table_runs(*sky, body);
}

namespace {

void set_patches(std::vector<float>& table, const SkyDivision& sky, const std::vector<PatchStep>& patches,
                 const StepScalars& s, Body body) {
  using namespace kernels;
  const auto set = [&](size_t slot, double value) { table[slot] = static_cast<float>(value); };
  const auto side = [&](const PatchStep& p) {
    return body == Body::cylinder ? p.side : p.faces[0] + p.faces[1] + p.faces[2] + p.faces[3];
  };
  size_t row = kFirstPatch;
  double side_total = 0, down_total = 0;
  for (const PatchStep& p : patches) {
    const double lit_long = p.lit_longwave - s.wall_longwave / std::numbers::pi;
    set(row + kLuminance, p.luminance);
    set(row + kSkyShort, p.shortwave * side(p));
    set(row + kThreshold, p.threshold);
    set(row + kLitShort, (s.wall_lit_shortwave - s.wall_shaded_shortwave) * side(p));
    set(row + kLitLongSide, lit_long * side(p));
    set(row + kLitLongDown, lit_long * p.down);
    side_total += side(p);
    down_total += p.down;
    row += kPatchWords;
  }
  set(kSideTotal, side_total);
  set(kDownTotal, down_total);
  row = kFirstPatch + kPatchWords * padded_patches(sky);
  for (size_t first = 0; first < patches.size(); first += 16) {
    double luminance = 0, light = 0, highest = 0;
    for (size_t k = first; k < std::min(first + 16, patches.size()); ++k) {
      luminance += patches[k].luminance;
      light += patches[k].shortwave * side(patches[k]);
      highest = std::max(highest, patches[k].threshold);
    }
    set(row + kAllLuminance, luminance);
    set(row + kAllShort, light);
    set(row + kHighestThreshold, highest);
    row += kWordWords;
  }
  for (const PatchRun& run : patch_runs(sky, body)) {
    const PatchStep& p = patches[run.first];
    set(row + kRunWord, static_cast<double>(run.first / 16));
    set(row + kRunFirst, static_cast<double>(run.first % 16));
    set(row + kRunPatches, static_cast<double>(run.count));
    set(row + kRunSide, side(p));
    set(row + kRunDown, p.down);
    set(row + kRunLongSide, p.longwave * side(p));
    set(row + kRunLongDown, p.longwave * p.down);
    row += kRunWords;
  }
}

void set_covers(std::vector<float>& table, const std::vector<double>& excess,
                const RadiationOptions& options) {
  for (size_t k = 0; k < excess.size(); ++k) {
    const SurfaceRow& surface = options.land_cover[k];
    const double row[kernels::kCoverWords] = {
        excess[k], surface.emissivity, surface.albedo,
        static_cast<double>(keeps_temperature(surface, options.constants))};
    std::transform(std::begin(row), std::end(row),
                   table.begin() + kernels::kFirstCover + kernels::kCoverWords * static_cast<ptrdiff_t>(k),
                   [](double value) { return static_cast<float>(value); });
  }
}

}  // namespace

StepValues step_values(const StepForcing& forcing, const RadiationOptions& options, const StepSky* sky) {
  StepValues values{step_scalars(forcing, options), {}};
  if (sky) values.patches = patch_steps(*sky, forcing, values.scalars, options);
  return values;
}

std::vector<float> step_table(const StepValues& values, const StepForcing& forcing,
                              const RadiationOptions& options, bool covers, const StepSky* sky,
                              const GroundReach& reach) {
  using namespace kernels;
  const StepScalars& s = values.scalars;
  const Constants& c = options.constants;
  const BodyFactors body = body_factors(options.posture, c);
  const bool cylinder = options.body == Body::cylinder;
  std::vector<float> table(static_cast<size_t>(step_table_size(sky ? &sky->division : nullptr, options.body)),
                           0.0f);
  const auto set = [&](int slot, double value) {
    table[static_cast<size_t>(slot)] = static_cast<float>(value);
  };
  set(kAirLongwave, s.sigma_t4);
  set(kBeamDown, s.beam * s.sin_altitude);
  set(kDiffuse, s.diffuse);
  set(kGlobal, s.global);
  set(kHalfTanZenith, s.day ? s.tan_zenith / 2 : 1.0);
  set(kWallAlbedo, s.wall_albedo);
  set(kViewOpacity, 1 - s.view_canopy);
  set(kCanopy, s.canopy);
  set(kSkyLongwave, s.sky_emissivity * s.sigma_t4);
  set(kSideSkyLongwave, s.side_emissivity * s.sigma_t4);
  set(kWallLongwave, s.wall_longwave);
  set(kWallLitLongwave, s.wall_lit_longwave);
  set(kWallReflects, 1 - s.wall_emissivity);
  set(kReflectedRadiance, (1 - s.wall_emissivity) * 0.5 / std::numbers::pi);
  set(kWallShadowOne, s.wall_shadow_one);
  set(kWallLitShortwave, s.wall_lit_shortwave);
  set(kWallShadedShortwave, s.wall_shaded_shortwave);
  set(kWallRadiance, s.wall_longwave / std::numbers::pi);
  set(kCurvedBeam, s.beam * s.curved_beam);
  double faces = 0;
  for (size_t k = 0; k < 4; ++k) {
    faces += s.face_beam[k];
    set(kWallSun + static_cast<int>(k), s.wall_sun[k]);
  }
  set(kFaceBeam, s.beam * faces);
  set(kAir, s.air_k);
  set(kWallExcess, s.wall_excess_k);
  set(kWallSigma, s.emitted_lit_factor);
  set(kUpShare, body.up);
  set(kSideShare, body.side);
  // A box has no curved side: what its faces receive from the patches takes its place.
  set(kCurvedShare, cylinder ? body.curved : body.side);
  set(kAbsorbShort, c.absorption_short);
  set(kAbsorbLong, c.absorption_long);
  set(kBodySigma, c.absorption_long * c.sigma);
  set(kKelvin, c.kelvin_tmrt);
  set(kLowest, c.tmrt_lowest_c);
  set(kHighest, c.tmrt_highest_c);
  set(kNearSteps, reach.near);
  set(kFarSteps, reach.far);
  set(kPerNear, 1.0 / reach.near);
  set(kPerNearWall, 1.0 / (reach.near + 1));
  set(kPerFar, 1.0 / reach.far);
  set(kPerFarWall, 1.0 / (reach.far + 1));
  set(kWallExtra, s.wall_lit_longwave - s.wall_longwave);
  set(kSigma, c.sigma);
  set(kAnyWall, c.sunlit_wall == SunlitWall::any);
  const std::vector<double> excess = ground_excess(forcing, options, covers);
  set(kBareExcess, excess[0]);
  set(kBareEmissivity, options.bare.emissivity);
  set(kBareAlbedo, options.bare.albedo);
  const auto given = [&](double warm) {
    return c.sigma * options.bare.emissivity * (std::pow(s.air_k + warm, 4) - std::pow(s.air_k, 4));
  };
  set(kBareInSun, given(excess[0]));
  set(kBareUnderPlant, given(excess[0] * s.canopy));
  set(kSunUp, s.day);
  set(kClosed, c.closed_longwave);
  for (size_t k = 0; k < 4; ++k) set(kSideScale + static_cast<int>(k), s.side_scale[k]);
  if (covers) set_covers(table, excess, options);
  if (sky) set_patches(table, sky->division, values.patches, s, options.body);
  return table;
}

void set_delay(std::vector<float>& table, const DelayStep& delay) {
  table[kernels::kDelayWeight] = static_cast<float>(delay.weight);
  table[kernels::kDelayFirst] = delay.first;
  table[kernels::kDelayKeep] = delay.keep;
}

std::vector<float> side_table(const StepValues& values) {
  using namespace kernels;
  const StepScalars& s = values.scalars;
  std::vector<float> table;
  for (const double beam : s.plane_beam) table.push_back(static_cast<float>(s.beam * beam));
  for (const PatchStep& p : values.patches) {
    const double row[kSideRow] = {p.shortwave, p.longwave, p.down,     p.threshold,   p.faces[0],
                                  p.faces[1],  p.faces[2], p.faces[3], p.lit_longwave};
    for (const double value : row) table.push_back(static_cast<float>(value));
  }
  return table;
}

namespace {
void fill_row(std::vector<int32_t>& offsets) { offsets.resize(kernels::offset_row(offsets.size())); }
}  // namespace

GroundSteps ground_steps(const GroundReach& reach, int64_t pitch) {
  GroundSteps steps;
  for (int ray = 0; ray < kGroundRays; ++ray) {
    const RaySlope slope = ray_slope({ground_azimuth_deg(ray), 45});
    for (int n = 0; n < reach.far; ++n) {
      if (n == reach.near) fill_row(steps.offsets);
      const auto along = [&](double rate, bool dominant) {
        const double way = dominant ? n : std::nearbyint(std::abs(rate) * n);
        return static_cast<int32_t>(rate < 0 ? -way : way);
      };
      const int32_t row = along(slope.rows, !slope.east_west), col = along(slope.cols, slope.east_west);
      steps.offsets.push_back(static_cast<int32_t>(row * pitch + col));
    }
    fill_row(steps.offsets);
    const SunSide side = sun_side(ground_azimuth_deg(ray));
    steps.sides.insert(steps.sides.end(),
                       {side.branch, std::bit_cast<int32_t>(side.low), std::bit_cast<int32_t>(side.high), 0});
  }
  return steps;
}

}  // namespace lockstep::urban
