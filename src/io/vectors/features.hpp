// Points and areas with their fields, from files of maps.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/rasters/raster.hpp"

namespace lockstep::io {

struct MapPoint {
  double x = 0, y = 0;
};
/// The boundary of an area or of a hole, without the first corner a second time.
using MapRing = std::vector<MapPoint>;

struct Feature {
  enum class Kind { point, area, line, other };
  Kind kind = Kind::other;  ///< lines are written alone: read ones are `other`
  std::string where;        ///< "districts.gpkg, feature 3", for errors
  std::string type;         ///< as the file names it, of others
  std::vector<MapRing>
      rings;  ///< of one polygon or several; of a point one ring of one corner, of a line one of its corners
  std::vector<size_t>
      polygons;  ///< the first ring of each polygon of an area; its further rings are its holes
  std::vector<std::pair<std::string, std::string>> fields;

  /// A field's text; none where it is absent.
  const std::string* field(std::string_view name) const;
};

struct FeatureFile {
  std::vector<Feature> features;
  std::string crs;        ///< WKT or "EPSG:…"; empty where the file names none
  std::string usual_crs;  ///< of its format: of coordinates that are degrees, in a file that names none
};

struct FeatureOptions {
  std::string layer;  ///< of a GeoPackage with several
  std::string crs;    ///< of files that name none: "EPSG:3006"
};

/// GeoJSON, CSV with a column of WKT, and with GDAL GeoPackage and shapefile; in the coordinates of the file.
FeatureFile read_feature_file(const std::filesystem::path& path, const FeatureOptions& options);
/// Those of a file in the coordinates of the raster. Throws InputError for files without a CRS on a raster with one, and where they
/// cannot be brought together; UnsupportedError where that needs GDAL and it is absent.
std::vector<Feature> features_on(FeatureFile file, const RasterGrid& grid, const FeatureOptions& options,
                                 const std::string& where);
/// Whether the name is that of a file of shapes which is no text.
bool is_shape_file(const std::filesystem::path& path);

FeatureFile parse_geojson_features(std::string_view text, const std::string& where);
/// A column named wkt, geometry, geom or the_geom holds the shapes.
FeatureFile parse_wkt_csv(std::string_view text, const std::string& where);
/// Takes POINT, POLYGON and MULTIPOLYGON into the feature, other types by name. Throws InputError for what is no WKT.
void take_wkt(std::string_view wkt, Feature& feature);
FeatureFile read_ogr_features(const std::filesystem::path& path, const FeatureOptions& options);

}  // namespace lockstep::io
