// A step's scalars as the kernels read them, and the fixed tables of the ground view.
#pragma once

#include <cstdint>
#include <vector>

#include "urban/radiation/kernels.hpp"
#include "urban/radiation/step/scalars.hpp"

namespace lockstep::urban {

/// How far rays reach, sky and sun alike: min(relief / tan 3°, the limit of the options), at least a pixel.
double longest_ray_m(const City& city, const RadiationOptions& options);

/// Slots, rows of the land cover and patches, laid out as kernels.hpp says. `sky`: null for an isotropic one.
std::vector<float> step_table(const StepForcing& forcing, const RadiationOptions& options, bool covers,
                              const SkyDivision* sky, const GroundReach& reach, const DelayStep& delay);
/// Floats of the table, and runs of patches in it (kernels::RunWord).
int64_t step_table_size(const SkyDivision* sky, Body body);
int32_t step_table_runs(const SkyDivision& sky, Body body);

/// The table of sides (kernels::SideWord). `sky`: null for an isotropic one.
std::vector<float> side_table(const StepForcing& forcing, const RadiationOptions& options,
                              const SkyDivision* sky);

/// Pixels of the rays over the ground from the pixel they start at, as kernels::kOffsetRow lays them out.
struct GroundSteps {
  std::vector<int32_t> offsets;  ///< in a grid of that pitch
  std::vector<int32_t> sides;    ///< which way the sun would stand, as sun_side has it: four words a ray
};
GroundSteps ground_steps(const GroundReach& reach, int64_t pitch);

}  // namespace lockstep::urban
