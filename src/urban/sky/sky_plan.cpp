#include "urban/sky/sky_plan.hpp"

#include <fmt/format.h>

#include <bit>

#include "lockstep/error.hpp"
#include "urban/sky/svf_weights.hpp"

namespace lockstep::urban {
namespace {

/// Bits of the patches of a band that are in a word and a sector.
uint32_t mask_of(const SkyDivision& sky, const SkyBand& band, int word, Sector sector) {
  uint32_t mask = 0;
  for (int k = 0; k < 16; ++k) {
    const int patch = 16 * word + k;
    if (patch < band.first || patch >= band.first + band.count) continue;
    if (in_sector(sky.patches[static_cast<size_t>(patch)].azimuth_deg, sector)) mask |= 1u << (2 * k);
  }
  return mask;
}

std::vector<int32_t> view_table(const SkyDivision& sky) {
  const std::vector<PatchWeight> weights = patch_weights(sky);
  std::vector<int32_t> heads, segments;
  const auto units = [](double weight) { return std::bit_cast<int32_t>(weight_units(weight)); };
  for (size_t b = 0; b < sky.bands.size(); ++b) {
    const SkyBand& band = sky.bands[b];
    const int32_t begin = static_cast<int32_t>(segments.size() / 4);
    for (int word = band.first / 16; word <= (band.first + band.count - 1) / 16; ++word) {
      segments.push_back(word);
      for (Sector sector : {Sector::whole, Sector::east, Sector::south})
        segments.push_back(std::bit_cast<int32_t>(mask_of(sky, band, word, sector)));
    }
    const int32_t end = static_cast<int32_t>(segments.size() / 4);
    heads.insert(heads.end(), {begin, end, units(weights[b].whole), units(weights[b].half)});
  }
  heads.insert(heads.end(), segments.begin(), segments.end());
  return heads;
}

}  // namespace

Ray plan_ray(const City& city, const Direction& direction, const RayOptions& options) {
  if (!(options.max_reach_m > 0))
    throw InputError(fmt::format("longest reach {} m", options.max_reach_m), "rays", "a positive length");
  const RayBounds bounds{city.rows, city.cols, city.pixel_size_m, city.relief_m(), options.max_reach_m};
  return {direction, ray_steps(direction, bounds)};
}

SkyPlan plan_sky(const City& city, const SkyOptions& options) {
  SkyPlan plan;
  plan.sky = sky_division(options.patches, options.edges);
  for (const Direction& patch : plan.sky.patches) {
    const bool open = options.zenith == ZenithRule::open && patch.altitude_deg >= 89.5;
    plan.rays.push_back(open ? Ray{patch, {}} : plan_ray(city, patch, options.rays));
    plan.reach.include(reach_of(plan.rays.back().steps));
  }
  plan.view_table = view_table(plan.sky);
  plan.pixel_size_m = city.pixel_size_m;
  return plan;
}

}  // namespace lockstep::urban
