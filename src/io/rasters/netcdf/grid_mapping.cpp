#include "io/rasters/netcdf/grid_mapping.hpp"

#include <array>
#include <optional>

#include "io/text/text_scanner.hpp"

namespace lockstep::io {
namespace {

/// The text between the quotes behind `KEY["`.
std::string_view name_behind(std::string_view wkt, std::string_view key) {
  const size_t at = wkt.find(std::string(key) + "[\"");
  if (at == wkt.npos) return {};
  const size_t begin = at + key.size() + 2, end = wkt.find('"', begin);
  return end == wkt.npos ? std::string_view() : wkt.substr(begin, end - begin);
}

/// The number at `at`, up to a comma or bracket; `at` moves behind it.
std::optional<double> number_at(std::string_view wkt, size_t& at) {
  const size_t end = wkt.find_first_of(",]", at);
  double value = 0;
  if (end == wkt.npos || !parse_double(wkt.substr(at, end - at), value)) return {};
  at = end + 1;
  return value;
}

std::optional<double> parameter(std::string_view wkt, std::string_view name) {
  const std::string key = "PARAMETER[\"" + std::string(name) + "\",";
  size_t at = wkt.find(key);
  if (at == wkt.npos) return {};
  at += key.size();
  return number_at(wkt, at);
}

/// WKT's name of a parameter and CF's.
struct Named {
  std::string_view wkt, cf;
};
struct Projection {
  std::string_view wkt, cf;
  std::array<Named, 5> parameters;
};
constexpr Named kEasting{"false_easting", "false_easting"}, kNorthing{"false_northing", "false_northing"};
constexpr Projection kProjections[] = {
    {"Transverse_Mercator",
     "transverse_mercator",
     {{{"latitude_of_origin", "latitude_of_projection_origin"},
       {"central_meridian", "longitude_of_central_meridian"},
       {"scale_factor", "scale_factor_at_central_meridian"},
       kEasting,
       kNorthing}}},
    {"Lambert_Conformal_Conic_1SP",
     "lambert_conformal_conic",
     {{{"latitude_of_origin", "latitude_of_projection_origin"},
       {"central_meridian", "longitude_of_central_meridian"},
       {"latitude_of_origin", "standard_parallel"},
       kEasting,
       kNorthing}}},
    {"Lambert_Azimuthal_Equal_Area",
     "lambert_azimuthal_equal_area",
     {{{"latitude_of_center", "latitude_of_projection_origin"},
       {"longitude_of_center", "longitude_of_projection_origin"},
       kEasting,
       kNorthing,
       {}}}},
    {"Lambert_Conformal_Conic_2SP",
     "lambert_conformal_conic",
     {{{"latitude_of_origin", "latitude_of_projection_origin"},
       {"central_meridian", "longitude_of_central_meridian"},
       kEasting,
       kNorthing,
       {}}}},
};

}  // namespace

GridMapping grid_mapping_of(std::string_view wkt) {
  GridMapping mapping;
  const std::string_view projection = name_behind(wkt, "PROJECTION");
  for (const Projection& known : kProjections) {
    if (known.wkt != projection) continue;
    mapping.name = known.cf;
    for (const Named& p : known.parameters)
      if (const auto value = parameter(wkt, p.wkt); value && !p.cf.empty())
        mapping.parameters.push_back({std::string(p.cf), {*value}});
    const auto first = parameter(wkt, "standard_parallel_1"), second = parameter(wkt, "standard_parallel_2");
    if (first && second) mapping.parameters.push_back({"standard_parallel", {*first, *second}});
  }
  if (mapping.name.empty()) return mapping;
  const std::string_view spheroid = name_behind(wkt, "SPHEROID");
  if (spheroid.empty()) return mapping;
  size_t at = static_cast<size_t>(spheroid.data() + spheroid.size() - wkt.data()) + 2;
  const auto axis = number_at(wkt, at), flattening = number_at(wkt, at);
  if (axis) mapping.parameters.push_back({"semi_major_axis", {*axis}});
  if (flattening) mapping.parameters.push_back({"inverse_flattening", {*flattening}});
  return mapping;
}

}  // namespace lockstep::io
