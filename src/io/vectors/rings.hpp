// Which rings of an area are holes of which.
#pragma once

#include <vector>

#include "io/vectors/features.hpp"

namespace lockstep::io {

/// Twice the signed area of a ring: positive counterclockwise.
double twice_area(const MapRing& ring);

/// Of each ring those that it is within. Their boundaries may touch, also along whole edges, but not cross.
std::vector<std::vector<size_t>> rings_around(const std::vector<MapRing>& rings);

}  // namespace lockstep::io
