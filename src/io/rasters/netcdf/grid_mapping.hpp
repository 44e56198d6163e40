// The CF grid mapping of a coordinate reference system given as WKT.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::io {

struct GridMapping {
  std::string name;  ///< grid_mapping_name; empty for projections that CF has no name for
  std::vector<std::pair<std::string, std::vector<double>>> parameters;
};

/// From WKT 1, as GDAL writes it. What it does not know is left to the attribute crs_wkt.
GridMapping grid_mapping_of(std::string_view wkt);

}  // namespace lockstep::io
