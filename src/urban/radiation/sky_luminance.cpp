#include "urban/radiation/sky_luminance.hpp"

#include <algorithm>
#include <array>

namespace lockstep::urban {
namespace {

std::vector<double> perez(std::span<const Direction> patches, const PerezInput& input,
                          const Constants& constants) {
  return perez_luminance(patches, input, constants.perez, constants.perez_guards);
}

constexpr auto kSkyModels = std::to_array<SkyModelRow>({
    {SkyModel::anisotropic, "anisotropic", "The sky is brighter around the sun (Perez, {} patches). ", perez},
    {SkyModel::isotropic, "isotropic", "The sky is equally bright everywhere. "},
});

}  // namespace

const SkyModelRow& row_of(SkyModel model) {
  return *std::ranges::find(kSkyModels, model, &SkyModelRow::model);
}

std::span<const Choice<SkyModel>> choices(SkyModel) {
  static constexpr auto kAll = [] {
    std::array<Choice<SkyModel>, kSkyModels.size()> all{};
    for (size_t k = 0; k < all.size(); ++k) all[k] = {kSkyModels[k].name, kSkyModels[k].model};
    return all;
  }();
  return kAll;
}

}  // namespace lockstep::urban
