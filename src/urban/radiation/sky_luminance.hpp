// Models of the sky's brightness, one row each.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lockstep/urban/series.hpp"
#include "urban/radiation/constants.hpp"
#include "urban/radiation/perez.hpp"

namespace lockstep::urban {

struct SkyModelRow {
  SkyModel model;
  std::string_view name, about;
  /// Relative luminance of each patch, sum 1. Null: the sky is equally bright everywhere and enters by its view factors.
  std::vector<double> (*luminance)(std::span<const Direction> patches, const PerezInput& input,
                                   const Constants& constants) = nullptr;
};

const SkyModelRow& row_of(SkyModel model);
/// Whether rays are cast to patches of this sky and their luminances are added up.
inline bool has_patches(SkyModel model) { return row_of(model).luminance != nullptr; }

}  // namespace lockstep::urban
