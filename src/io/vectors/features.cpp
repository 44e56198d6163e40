#include "io/vectors/features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "io/rasters/crs.hpp"
#include "io/text/file.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr const char* kVectorFiles =
    "areas or points: GeoJSON, GeoPackage, shapefile or CSV with a column wkt";

std::string small_ending(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

bool all_degrees(const std::vector<Feature>& features) {
  for (const Feature& f : features)
    for (const MapRing& ring : f.rings)
      for (const MapPoint& p : ring)
        if (!(std::abs(p.x) <= 180 && std::abs(p.y) <= 90)) return false;
  return true;
}

void reproject_features(std::vector<Feature>& features, const std::string& from, const std::string& to,
                        const std::string& where) {
  std::vector<double> x, y;
  for (const Feature& f : features)
    for (const MapRing& ring : f.rings)
      for (const MapPoint& p : ring) x.push_back(p.x), y.push_back(p.y);
  reproject(from, to, x, y, where);
  size_t k = 0;
  for (Feature& f : features)
    for (MapRing& ring : f.rings)
      for (MapPoint& p : ring) p = {x[k], y[k]}, ++k;
}

}  // namespace

const std::string* Feature::field(std::string_view name) const {
  for (const auto& [key, value] : fields)
    if (key == name) return &value;
  return nullptr;
}

bool is_shape_file(const std::filesystem::path& path) {
  const std::string ending = small_ending(path);
  return ending == ".gpkg" || ending == ".shp";
}

FeatureFile read_feature_file(const std::filesystem::path& path, const FeatureOptions& options) {
  if (is_shape_file(path)) return read_ogr_features(path, options);
  const std::string text = read_text_file(path, kVectorFiles), where = path.string();
  const size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (!options.layer.empty())
    throw InputError(fmt::format("a text, which has no layer '{}'", shown(options.layer)), where,
                     "a GeoPackage with layers");
  if (first != text.npos && text[first] == '{') return parse_geojson_features(text, where);
  return parse_wkt_csv(text, where);
}

std::vector<Feature> features_on(FeatureFile file, const RasterGrid& grid, const FeatureOptions& options,
                                 const std::string& where) {
  if (file.features.empty()) throw InputError("no features", where, "at least one");
  if (grid.crs_wkt.empty()) return file.features;
  if (file.crs.empty())
    file.crs = options.crs;
  else if (!options.crs.empty() && !is_same_crs(file.crs, options.crs))
    throw InputError(fmt::format("it declares another CRS than {}", shown(options.crs)), where,
                     "the CRS that the file declares");
  // Numbers that cannot be degrees are the raster's own.
  if (file.crs.empty() && !file.usual_crs.empty())
    file.crs = all_degrees(file.features) ? file.usual_crs : grid.crs_wkt;
  if (file.crs.empty())
    throw InputError("it has no coordinate reference system", where, "a file that does, or its name with it");
  if (!is_same_crs(file.crs, grid.crs_wkt)) reproject_features(file.features, file.crs, grid.crs_wkt, where);
  return file.features;
}

}  // namespace lockstep::io
