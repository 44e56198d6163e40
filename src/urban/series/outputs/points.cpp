#include "urban/series/outputs/points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "io/series/csv.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text_scanner.hpp"
#include "io/vectors/features.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

using nlohmann::json;

/// A point as its file gives it.
struct GivenPoint {
  std::string id, where;
  double x = 0, y = 0;
  bool degrees = false;
};

/// Longitude and latitude to the raster's coordinates, by Newton steps over the other way round.
std::pair<double, double> to_grid(const io::RasterGrid& grid, double lon, double lat,
                                  const std::string& where) {
  if (grid.crs_wkt.empty())
    throw InputError("a point in degrees, but the raster has no coordinate system", where,
                     "x and y in the raster's coordinates");
  double x = grid.transform[0] + static_cast<double>(grid.cols) / 2 * grid.transform[1];
  double y = grid.transform[3] + static_cast<double>(grid.rows) / 2 * grid.transform[5];
  for (int k = 0; k < 20; ++k) {
    const double h = 10;
    const io::LonLat at = io::to_lon_lat(grid, x, y), east = io::to_lon_lat(grid, x + h, y),
                     north = io::to_lon_lat(grid, x, y + h);
    const double a = (east.lon - at.lon) / h, b = (north.lon - at.lon) / h, c = (east.lat - at.lat) / h,
                 d = (north.lat - at.lat) / h;
    const double u = lon - at.lon, v = lat - at.lat, det = a * d - b * c;
    if (!(std::abs(det) > 0)) break;
    const double dx = (u * d - b * v) / det, dy = (a * v - u * c) / det;
    x += dx;
    y += dy;
    if (!(std::hypot(dx, dy) < 1e7)) break;
    if (std::hypot(dx, dy) < 1e-4) return {x, y};
  }
  throw InputError(fmt::format("the point {}, {} cannot be found in the raster's projection", lat, lon),
                   where, "a place near the raster");
}

std::vector<GivenPoint> parse_point_csv(std::string_view text, const std::string& where) {
  std::vector<std::string> names;
  std::optional<size_t> id, x, y, lat, lon;
  bool degrees = false;
  const auto read_head = [&](const std::vector<std::string>& fields, const io::TextScanner& scan) {
    for (std::string name : fields) {
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      names.push_back(std::move(name));
    }
    const auto column = [&](std::initializer_list<std::string_view> any) -> std::optional<size_t> {
      for (const std::string_view name : any)
        for (size_t k = 0; k < names.size(); ++k)
          if (names[k] == name) return k;
      return {};
    };
    id = column({"id", "name"}), x = column({"x", "easting"}), y = column({"y", "northing"});
    lat = column({"lat", "latitude"}), lon = column({"lon", "lng", "longitude"});
    degrees = !(x && y);
    if (degrees && !(lat && lon))
      scan.fail("no columns x and y, nor lat and lon", "a header id,x,y or id,lat,lon");
  };
  std::vector<GivenPoint> points;
  io::for_each_csv_row(text, where,
                       [&](const std::vector<std::string>& fields, bool first, const io::TextScanner& scan) {
                         if (first) return read_head(fields, scan);
                         if (fields.size() != names.size())
                           scan.fail(fmt::format("{} fields", fields.size()),
                                     fmt::format("{} as in the header", names.size()));
                         const auto number = [&](size_t k) {
                           double value = 0;
                           if (!io::parse_double(fields[k], value) || !std::isfinite(value))
                             scan.fail(fmt::format("{} is '{}'", names[k], io::shown(fields[k])), "a number");
                           return value;
                         };
                         GivenPoint point;
                         point.where = scan.where();
                         point.id = id ? fields[*id] : std::to_string(points.size() + 1);
                         if (point.id.empty()) scan.fail("a point without id", "an id");
                         point.degrees = degrees;
                         point.x = number(degrees ? *lon : *x);
                         point.y = number(degrees ? *lat : *y);
                         points.push_back(point);
                       });
  if (names.empty()) throw InputError("an empty file", where, "points: id,x,y or id,lat,lon");
  return points;
}

void add_feature(const json& feature, const std::string& where, bool degrees,
                 std::vector<GivenPoint>& points) {
  const std::string at = fmt::format("{}, feature {}", where, points.size() + 1);
  const json* geometry = &feature;
  if (feature.is_object() && feature.contains("geometry")) geometry = &feature["geometry"];
  const bool is_point = geometry->is_object() && geometry->contains("type") &&
                        (*geometry)["type"] == "Point" && geometry->contains("coordinates") &&
                        (*geometry)["coordinates"].is_array() && (*geometry)["coordinates"].size() >= 2 &&
                        (*geometry)["coordinates"][0].is_number() &&
                        (*geometry)["coordinates"][1].is_number();
  if (!is_point) throw InputError("a feature that is not a point", at, "a geometry of type Point");
  GivenPoint point;
  point.where = at;
  point.id = std::to_string(points.size() + 1);
  if (feature.contains("properties") && feature["properties"].is_object())
    for (const char* key : {"id", "name"})
      if (feature["properties"].contains(key)) {
        const json& value = feature["properties"][key];
        point.id = value.is_string() ? value.get<std::string>() : value.dump();
        break;
      }
  point.x = (*geometry)["coordinates"][0].get<double>();
  point.y = (*geometry)["coordinates"][1].get<double>();
  point.degrees = degrees && std::abs(point.x) <= 180 && std::abs(point.y) <= 90;
  points.push_back(point);
}

std::vector<GivenPoint> parse_geojson(std::string_view text, const std::string& where,
                                      const io::RasterGrid& grid) {
  const json document = io::parse_json(text, where);
  if (!document.is_object()) throw InputError("no JSON object", where, "GeoJSON points");
  std::vector<GivenPoint> points;
  // GeoJSON is in degrees by its standard; numbers that are none of these are the raster's.
  const bool degrees = !grid.crs_wkt.empty();
  if (document.contains("features") && document["features"].is_array()) {
    for (const json& feature : document["features"]) add_feature(feature, where, degrees, points);
  } else {
    add_feature(document, where, degrees, points);
  }
  return points;
}

std::vector<SeriesPoint> place_points(const std::vector<GivenPoint>& given, const std::string& file,
                                      const io::RasterGrid& grid) {
  if (given.empty()) throw InputError("no points", file, "at least one");
  std::vector<SeriesPoint> points;
  std::set<std::string> ids;
  for (const GivenPoint& g : given) {
    SeriesPoint point;
    point.id = g.id;
    std::tie(point.x, point.y) = g.degrees ? to_grid(grid, g.x, g.y, g.where) : std::pair(g.x, g.y);
    const double col = (point.x - grid.transform[0]) / grid.transform[1],
                 row = (point.y - grid.transform[3]) / grid.transform[5];
    if (!(col >= 0 && row >= 0 && col < static_cast<double>(grid.cols) &&
          row < static_cast<double>(grid.rows))) {
      const double left = grid.transform[0], top = grid.transform[3],
                   right = left + static_cast<double>(grid.cols) * grid.transform[1],
                   bottom = top + static_cast<double>(grid.rows) * grid.transform[5];
      throw InputError(
          fmt::format("point {} ({}, {}) lies outside the raster", io::shown(g.id), point.x, point.y),
          g.where, fmt::format("x from {} to {}, y from {} to {}", left, right, bottom, top));
    }
    point.row = static_cast<int64_t>(row);
    point.col = static_cast<int64_t>(col);
    if (!ids.insert(point.id).second)
      throw InputError(fmt::format("point {} is repeated", io::shown(g.id)), g.where, "a unique id");
    points.push_back(point);
  }
  return points;
}

/// Points of a GeoPackage or a shapefile.
std::vector<GivenPoint> points_of_shapes(const std::filesystem::path& path, const io::RasterGrid& grid) {
  std::vector<GivenPoint> points;
  for (const io::Feature& feature :
       io::features_on(io::read_feature_file(path, {}), grid, {}, path.string())) {
    if (feature.kind != io::Feature::Kind::point)
      throw InputError("a feature that is not a point", feature.where, "a geometry of type Point");
    GivenPoint point;
    point.where = feature.where;
    point.id = std::to_string(points.size() + 1);
    for (const char* key : {"id", "name"})
      if (const std::string* text = feature.field(key); text && !text->empty()) {
        point.id = *text;
        break;
      }
    point.x = feature.rings[0][0].x;
    point.y = feature.rings[0][0].y;
    points.push_back(point);
  }
  return points;
}

}  // namespace

std::vector<SeriesPoint> parse_points(std::string_view text, std::string_view where,
                                      const io::RasterGrid& grid) {
  const std::string file(where);
  const size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const bool is_json = first != text.npos && text[first] == '{';
  return place_points(is_json ? parse_geojson(text, file, grid) : parse_point_csv(text, file), file, grid);
}

constexpr double kBytesOfCharacter = 64;

std::vector<SeriesPoint> read_points(const std::filesystem::path& path, const io::RasterGrid& grid) {
  const std::string where = path.string();
  if (io::is_shape_file(path)) return place_points(points_of_shapes(path, grid), where, grid);
  return io::within_memory(where, [&] {
    // A point is a line of at least six bytes, twice in memory with its texts.
    const std::string text = io::read_text_file(path, "points: CSV or GeoJSON");
    const io::InputClaim claim(kBytesOfCharacter * double(text.size()), "its points", where);
    return parse_points(text, where, grid);
  });
}

}  // namespace lockstep::urban
