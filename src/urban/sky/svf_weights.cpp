#include "urban/sky/svf_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::urban {

std::vector<PatchWeight> patch_weights(const SkyDivision& sky) {
  constexpr double pi = std::numbers::pi;
  std::vector<PatchWeight> weights;
  for (const SkyBand& band : sky.bands) {
    const int annuli = static_cast<int>(std::ceil(band.upper_edge_deg - band.lower_edge_deg));
    double sum = 0;
    for (int a = 0; a < annuli; ++a) {
      const double k = band.lower_edge_deg + 1 + a;
      sum += std::sin(pi * (2 * (91 - k) - 1) / 180);
    }
    const double ring = std::sin(pi / 180) * sum;
    weights.push_back({ring / band.count, ring / ((band.count + 1) / 2)});
  }
  return weights;
}

std::array<double, 4> flat_half_skies(const SkyDivision& sky) {
  const std::vector<PatchWeight> weights = patch_weights(sky);
  std::array<double, 4> sums{0, kSouthWestCorrection, kSouthWestCorrection, 0};
  constexpr std::array<Sector, 4> sectors = {Sector::east, Sector::south, Sector::west, Sector::north};
  for (size_t k = 0; k < sky.patches.size(); ++k)
    for (size_t d = 0; d < 4; ++d)
      if (in_sector(sky.patches[k].azimuth_deg, sectors[d]))
        sums[d] += weights[static_cast<size_t>(sky.band_of_patch[k])].half;
  for (double& sum : sums) sum = std::min(sum, 1.0);
  return sums;
}

uint32_t weight_units(double weight) { return static_cast<uint32_t>(std::llround(weight / kWeightUnit)); }

}  // namespace lockstep::urban
