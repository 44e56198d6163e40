// Areas of the ground as polygons.
#pragma once

#include <string>
#include <vector>

#include "io/vectors/features.hpp"

namespace lockstep::urban {

using Corner = io::MapPoint;
using Ring = io::MapRing;

/// One polygon or several, with their holes: a point is inside where an odd number of rings surrounds it.
struct AreaShape {
  std::string where;  ///< file and feature, for errors
  std::string name;
  std::vector<Ring> rings;
};

/// Throws InputError for a shape with rings of fewer than three corners, numbers that are not finite, or boundaries that
/// cross themselves or each other.
void check_shape(const AreaShape& shape);

}  // namespace lockstep::urban
