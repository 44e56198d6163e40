#include "urban/city/people_ground.hpp"

#include "urban/radiation/constants.hpp"

namespace lockstep::urban {

std::vector<uint8_t> people_ground(const City& city, std::span<const int32_t> land_cover) {
  std::vector<uint8_t> ground;
  if (!city.dem.empty()) {
    ground = ground_mask(city);
  } else {
    ground.resize(static_cast<size_t>(city.pixels()));
    for (size_t p = 0; p < ground.size(); ++p) ground[p] = !city.is_missing(static_cast<int64_t>(p));
  }
  for (size_t p = 0; p < land_cover.size(); ++p)
    if (land_cover[p] == kBuildingCode || land_cover[p] == kWaterCode) ground[p] = 0;
  return ground;
}

}  // namespace lockstep::urban
