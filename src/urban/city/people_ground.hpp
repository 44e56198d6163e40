// The pixels that people can use: ground that is neither roof nor water.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "urban/city/prepare.hpp"

namespace lockstep::urban {

/// 1 where people can be, 0 on roofs (2 m or more above the DEM, or of such a class), on water and on missing pixels.
/// `land_cover`: codes of the model; empty: none, and then the city has a DEM.
std::vector<uint8_t> people_ground(const City& city, std::span<const int32_t> land_cover);

}  // namespace lockstep::urban
