// The areas of a table as shapes on a run's grid.
#pragma once

#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/urban/areas.hpp"
#include "urban/areas/polygon.hpp"

namespace lockstep::urban {

/// A file of areas.
struct AreaSource {
  std::filesystem::path file;
  std::string layer, crs;  ///< of a file with several; of one that names none
};
/// On the grid, and checked. Throws InputError that names file and feature.
std::vector<io::Feature> read_areas(const AreaSource& source, const io::RasterGrid& grid);
/// Of areas that are all outside of the grid.
InputError outside_error(const std::vector<AreaShape>& shapes, const io::RasterGrid& grid,
                         const std::filesystem::path& file);
/// Named too. Throws InputError that names file and feature.
std::vector<AreaShape> read_area_shapes(const AreaStatisticsOptions& options, const io::RasterGrid& grid);

}  // namespace lockstep::urban
