// GeoJSON (RFC 7946, and the member "crs" of its forerunner).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "io/text/json_text.hpp"
#include "io/vectors/features.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

MapPoint geojson_point(const JsonValue& position) {
  const std::vector<JsonValue> numbers = position.items(2);
  return {numbers[0].number(), numbers[1].number()};
}

void add_polygon(const JsonValue& polygon, Feature& feature) {
  feature.polygons.push_back(feature.rings.size());
  for (const JsonValue& given : polygon.items(1)) {
    MapRing ring;
    for (const JsonValue& position : given.items()) ring.push_back(geojson_point(position));
    if (ring.size() > 1 && ring.front().x == ring.back().x && ring.front().y == ring.back().y)
      ring.pop_back();
    feature.rings.push_back(std::move(ring));
  }
}

void take_geometry(const JsonValue& geometry, Feature& feature) {
  feature.type = geometry.at("type").text();
  if (feature.type == "Point") {
    feature.kind = Feature::Kind::point;
    feature.rings = {{geojson_point(geometry.at("coordinates"))}};
  } else if (feature.type == "Polygon") {
    feature.kind = Feature::Kind::area;
    add_polygon(geometry.at("coordinates"), feature);
  } else if (feature.type == "MultiPolygon") {
    feature.kind = Feature::Kind::area;
    for (const JsonValue& polygon : geometry.at("coordinates").items(1)) add_polygon(polygon, feature);
  }
}

Feature geojson_feature(const JsonValue& object, const std::string& where) {
  Feature feature;
  feature.where = where;
  const auto geometry = object.find("geometry");
  if (geometry && geometry->json().is_null()) return feature;
  take_geometry(geometry ? *geometry : object, feature);
  const auto properties = object.find("properties");
  if (!properties || !properties->json().is_object()) return feature;
  for (const auto& [name, value] : properties->members())
    if (!value.json().is_null())
      feature.fields.emplace_back(
          name, value.json().is_string() ? value.json().get<std::string>() : value.json().dump());
  return feature;
}

}  // namespace

FeatureFile parse_geojson_features(std::string_view text, const std::string& where) {
  const JsonValue document = JsonValue::parse(text, where);
  FeatureFile file;
  file.usual_crs = "EPSG:4326";
  if (const auto crs = document.find("crs"); crs && !crs->json().is_null()) {
    file.crs = crs->at("properties").at("name").text();
    // Names of longitude and latitude, in this order.
    if (file.crs.ends_with("CRS84")) file.crs = file.usual_crs;
  }
  if (const auto features = document.find("features")) {
    for (const JsonValue& object : features->items())
      file.features.push_back(
          geojson_feature(object, fmt::format("{}, feature {}", where, file.features.size() + 1)));
  } else {
    file.features.push_back(geojson_feature(document, where + ", feature 1"));
  }
  return file;
}

}  // namespace lockstep::io
