#include "urban/series/outputs/points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "io/series/csv.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "io/text/text_scanner.hpp"
#include "io/vectors/features.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

io::FeatureFile parse_point_csv(std::string_view text, const std::string& where, const io::RasterGrid& grid) {
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
  io::FeatureFile file;
  const auto read_point = [&](const std::vector<std::string>& fields, const io::TextScanner& scan) {
    if (fields.size() != names.size())
      scan.fail(fmt::format("{} fields", fields.size()), fmt::format("{} as in the header", names.size()));
    const auto number = [&](size_t k, double most, const char* expected) {
      double value = 0;
      if (!io::parse_double(fields[k], value) || !(std::abs(value) <= most))
        scan.fail(fmt::format("{} is '{}'", names[k], io::shown(fields[k])), expected);
      return value;
    };
    constexpr double kAny = std::numeric_limits<double>::max();
    io::Feature& point = file.features.emplace_back();
    point.kind = io::Feature::Kind::point;
    point.where = scan.where();
    if (id && fields[*id].empty()) scan.fail("a point without id", "an id");
    if (id) point.fields = {{"id", fields[*id]}};
    point.rings = {{degrees ? io::MapPoint{number(*lon, 180, "degrees from -180 to 180"),
                                           number(*lat, 90, "degrees from -90 to 90")}
                            : io::MapPoint{number(*x, kAny, "a number"), number(*y, kAny, "a number")}}};
  };
  io::for_each_csv_row(text, where,
                       [&](const std::vector<std::string>& fields, bool first, const io::TextScanner& scan) {
                         first ? read_head(fields, scan) : read_point(fields, scan);
                       });
  if (names.empty()) throw InputError("an empty file", where, "points: id,x,y or id,lat,lon");
  if (degrees && grid.crs_wkt.empty())
    throw InputError("points in degrees, but the raster has no coordinate system", where,
                     "x and y in the raster's coordinates");
  file.crs = degrees ? "EPSG:4326" : grid.crs_wkt;
  return file;
}

std::vector<SeriesPoint> place_points(io::FeatureFile given, const std::string& file,
                                      const io::RasterGrid& grid) {
  if (given.features.empty()) throw InputError("no points", file, "at least one");
  std::vector<SeriesPoint> points;
  std::set<std::string> ids;
  for (const io::Feature& feature : io::features_on(std::move(given), grid, {}, file)) {
    if (feature.kind != io::Feature::Kind::point)
      throw InputError("a feature that is not a point", feature.where, "a geometry of type Point");
    SeriesPoint point;
    point.id = std::to_string(points.size() + 1);
    for (const char* key : {"id", "name"})
      if (const std::string* text = feature.field(key); text && !text->empty()) {
        point.id = *text;
        break;
      }
    point.x = feature.rings[0][0].x;
    point.y = feature.rings[0][0].y;
    const double col = (point.x - grid.transform[0]) / grid.transform[1],
                 row = (point.y - grid.transform[3]) / grid.transform[5];
    if (!(col >= 0 && row >= 0 && col < static_cast<double>(grid.cols) &&
          row < static_cast<double>(grid.rows))) {
      const double left = grid.transform[0], top = grid.transform[3],
                   right = left + static_cast<double>(grid.cols) * grid.transform[1],
                   bottom = top + static_cast<double>(grid.rows) * grid.transform[5];
      throw InputError(
          fmt::format("point {} ({}, {}) lies outside the raster", io::shown(point.id), point.x, point.y),
          feature.where, fmt::format("x from {} to {}, y from {} to {}", left, right, bottom, top));
    }
    point.row = static_cast<int64_t>(row);
    point.col = static_cast<int64_t>(col);
    if (!ids.insert(point.id).second)
      throw InputError(fmt::format("point {} is repeated", io::shown(point.id)), feature.where,
                       "a unique id");
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
  return place_points(is_json ? io::parse_geojson_features(text, file) : parse_point_csv(text, file, grid),
                      file, grid);
}

constexpr double kBytesOfCharacter = 128;

std::vector<SeriesPoint> read_points(const std::filesystem::path& path, const io::RasterGrid& grid) {
  const std::string where = path.string();
  if (io::is_shape_file(path)) return place_points(io::read_feature_file(path, {}), where, grid);
  return io::within_memory(where, [&] {
    // A point is a line of at least six bytes, twice in memory with its texts.
    const std::string text = io::read_text_file(path, "points: CSV or GeoJSON");
    const io::InputClaim claim(kBytesOfCharacter * double(text.size()), "its points", where);
    return parse_points(text, where, grid);
  });
}

}  // namespace lockstep::urban
