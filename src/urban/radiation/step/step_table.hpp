// A step's scalars as the kernels read them, and the fixed tables of the ground view.
#pragma once

#include <cstdint>
#include <vector>

#include "urban/radiation/kernels.hpp"
#include "urban/radiation/step/scalars.hpp"

namespace lockstep::urban {

/// How far rays reach, sky and sun alike: min(relief / tan 3°, the limit of the options), at least a pixel.
double longest_ray_m(const City& city, const RadiationOptions& options);

/// The contents of both tables of a step.
struct StepValues {
  StepScalars scalars;
  std::vector<PatchStep> patches;  ///< none of an isotropic sky
};
/// `sky`: null for an isotropic one.
StepValues step_values(const StepForcing& forcing, const RadiationOptions& options, const StepSky* sky);

/// Slots, rows of the land cover and patches, laid out as kernels.hpp says. `values` are those of the forcing, the
/// options and the sky. The delay, which depends on the steps before, is set_delay()'s.
std::vector<float> step_table(const StepValues& values, const StepForcing& forcing,
                              const RadiationOptions& options, bool covers, const StepSky* sky,
                              const GroundReach& reach);
void set_delay(std::vector<float>& table, const DelayStep& delay);
/// Floats of the table, and runs of patches in it (kernels::RunWord).
int64_t step_table_size(const SkyDivision* sky, Body body);
int32_t step_table_runs(const SkyDivision& sky, Body body);

/// The table of sides (kernels::SideWord).
std::vector<float> side_table(const StepValues& values);

/// Pixels of the rays over the ground from the pixel they start at, as kernels::kOffsetRow lays them out.
struct GroundSteps {
  std::vector<int32_t> offsets;  ///< in a grid of that pitch
  std::vector<int32_t> sides;    ///< sun_side() of a sun at the ray's azimuth: four words a ray
};
GroundSteps ground_steps(const GroundReach& reach, int64_t pitch);

}  // namespace lockstep::urban
