// How much of each pixel an area covers, exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "io/rasters/raster.hpp"
#include "urban/areas/polygon.hpp"

namespace lockstep::urban {

struct Coverage {
  std::vector<uint32_t> pixels;  ///< in order, those with a share
  std::vector<double> shares;    ///< of the pixel, above 0, at most 1
  double inside = 0;             ///< sum of the shares: the area within the grid, in pixels
  double whole = 0;              ///< the area, in pixels, also outside of the grid
};

/// Each edge adds, to the pixels of its rows, the signed area to its right; sums along a row are the shares (the method of
/// accumulated areas that draws fonts). Nothing is sampled: a rectangle on the pixels' boundaries gives ones. Throws InputError
/// for a shape without area, and for one whose parts overlap, which no crossing of boundaries shows where they run
/// along each other.
Coverage coverage_of(const AreaShape& shape, const io::RasterGrid& grid);

}  // namespace lockstep::urban
