#include "urban/sky/svf_weights.hpp"

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

uint32_t weight_units(double weight) { return static_cast<uint32_t>(std::llround(weight / kWeightUnit)); }

}  // namespace lockstep::urban
