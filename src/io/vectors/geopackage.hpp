// Tables of points, lines and areas as a GeoPackage, through GDAL.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "io/vectors/features.hpp"

namespace lockstep::io {

/// A column of numbers (NaN: no value) or of texts.
struct FeatureColumn {
  std::string name;
  std::variant<std::vector<double>, std::vector<std::string>> values;
};

struct FeatureLayer {
  std::string name;
  Feature::Kind kind = Feature::Kind::point;
  std::vector<std::vector<MapRing>> shapes;  ///< of each feature, as Feature::rings
  std::vector<FeatureColumn> columns;        ///< as many values as shapes
};

/// The bytes depend on the layers alone: the format's date of change is fixed. Throws UnsupportedError where GDAL is absent.
void write_geopackage(const std::filesystem::path& path, const std::string& crs_wkt,
                      std::span<const FeatureLayer> layers);

/// Rings that do not cross as WKT: those within an even number of others bound polygons, the rest are holes.
std::string wkt_of_area(const std::vector<MapRing>& rings);

}  // namespace lockstep::io
