#include "urban/areas/area_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "io/text/text_scanner.hpp"
#include "io/vectors/rings.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

OptionError area_error(const char* option, std::string what, std::string expected,
                       const std::string& place = {}) {
  return schema_of<AreaStatisticsOptions>().error(
      {OptionError::Kind::invalid, option, std::move(what), std::move(expected), "", place});
}

std::string name_of_area(const io::Feature& feature, const std::string& id, size_t number) {
  if (!id.empty()) {
    if (const std::string* text = feature.field(id)) return *text;
    std::string fields;
    for (const auto& [name, value] : feature.fields) fields += (fields.empty() ? "" : ", ") + name;
    throw area_error("id", fmt::format("no field '{}'", io::shown(id)),
                     fields.empty() ? "a field; there is none" : "one of " + fields, feature.where);
  }
  for (const char* usual : {"id", "ID", "name", "Name", "NAME"})
    if (const std::string* text = feature.field(usual); text && !text->empty()) return *text;
  return std::to_string(number);
}

/// Throws where a hole is not inside of a polygon, or a polygon is inside of another one.
void check_holes(const io::Feature& area) {
  const std::vector<std::vector<size_t>> around = io::rings_around(area.rings);
  for (size_t r = 0; r < area.rings.size(); ++r) {
    const bool hole = std::ranges::find(area.polygons, r) == area.polygons.end();
    if (hole != (around[r].size() % 2 == 1))
      throw InputError(hole ? "a hole outside of its polygon" : "parts of its polygons overlap", area.where,
                       "polygons that do not overlap, with their holes inside");
  }
}

}  // namespace

std::vector<io::Feature> read_areas(const AreaSource& source, const io::RasterGrid& grid) {
  const std::string where = source.file.string();
  const io::FeatureOptions reading{source.layer, source.crs};
  io::FeatureFile file = io::read_feature_file(source.file, reading);
  if (file.crs.empty() && file.usual_crs.empty() && source.crs.empty() && !grid.crs_wkt.empty())
    throw area_error("", "areas without a coordinate reference system",
                     "a file that names one, or {areas_crs} such as EPSG:3006", where);
  std::vector<io::Feature> features = io::features_on(std::move(file), grid, reading, where);
  for (const io::Feature& feature : features) {
    if (feature.kind != io::Feature::Kind::area)
      throw area_error("",
                       feature.type.empty() ? "a feature without a shape" : "a shape of type " + feature.type,
                       "Polygon or MultiPolygon", feature.where);
    check_shape({feature.where, "", feature.rings});
    check_holes(feature);
  }
  return features;
}

InputError outside_error(const std::vector<AreaShape>& shapes, const io::RasterGrid& grid,
                         const std::filesystem::path& file) {
  const auto text = [](double west, double east, double south, double north) {
    return fmt::format("x from {} to {}, y from {} to {}", west, east, south, north);
  };
  constexpr double kFar = std::numeric_limits<double>::infinity();
  double west = kFar, east = -kFar, south = kFar, north = -kFar;
  for (const AreaShape& shape : shapes)
    for (const Ring& ring : shape.rings)
      for (const Corner& corner : ring) {
        west = std::min(west, corner.x), east = std::max(east, corner.x);
        south = std::min(south, corner.y), north = std::max(north, corner.y);
      }
  const auto& t = grid.transform;
  return InputError("all areas lie outside of the raster: " + text(west, east, south, north), file.string(),
                    text(t[0], t[0] + static_cast<double>(grid.cols) * t[1],
                         t[3] + static_cast<double>(grid.rows) * t[5], t[3]));
}

std::vector<AreaShape> read_area_shapes(const AreaStatisticsOptions& options, const io::RasterGrid& grid) {
  std::vector<AreaShape> shapes;
  std::set<std::string> names;
  for (io::Feature& feature : read_areas({options.areas, options.layer, options.areas_crs}, grid)) {
    AreaShape shape{feature.where, name_of_area(feature, options.id, shapes.size() + 1),
                    std::move(feature.rings)};
    if (!names.insert(shape.name).second)
      throw area_error("", fmt::format("area {} is repeated", io::shown(shape.name)),
                       "names of their own, or {id}, a field that has them", feature.where);
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace lockstep::urban
