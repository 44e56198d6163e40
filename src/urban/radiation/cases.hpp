// Cases of the radiation's kernels; add_urban_cases adds them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/verify.hpp"
#include "urban/radiation/model.hpp"

namespace lockstep::urban {

/// A city for cases and measurements.
struct CaseSite {
  City city;
  Walls walls;
  std::vector<int32_t> codes;  ///< of the land cover; empty: bare
};
using SharedSite = std::shared_ptr<const CaseSite>;
/// Sizes "64x48" up to 40,000 pixels are random cities, larger ones the sample city.
SharedSite site_of(const std::string& size, uint64_t seed, bool plants, bool covers);
RadiationScene scene_of(const CaseSite& site);
StepForcing noon(uint64_t seed);

void add_radiation_cases(CaseRegistry& registry);

}  // namespace lockstep::urban
