// Coordinate reference systems, by GDAL and PROJ.
#include "io/rasters/crs.hpp"

#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "io/rasters/gdal/gdal_api.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr int kTraditionalAxes = 0;  // OAMS_TRADITIONAL_GIS_ORDER: longitude before latitude

class SpatialReference {
 public:
  explicit SpatialReference(const GdalApi& api) : api_(api), handle_(api.OSRNewSpatialReference(nullptr)) {
    api_.OSRSetAxisMappingStrategy(handle_, kTraditionalAxes);
  }
  ~SpatialReference() { api_.OSRDestroySpatialReference(handle_); }
  SpatialReference(const SpatialReference&) = delete;
  SpatialReference& operator=(const SpatialReference&) = delete;
  bool set(const std::string& wkt) {
    return !wkt.empty() && api_.OSRSetFromUserInput(handle_, wkt.c_str()) == 0;
  }
  bool set_epsg(int code) { return api_.OSRImportFromEPSG(handle_, code) == 0; }
  GdalHandle handle() const { return handle_; }

 private:
  const GdalApi& api_;
  GdalHandle handle_;
};

/// The second member of a compound system's WKT, after its name.
std::string horizontal_part(std::string_view wkt) {
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t k = 0; k < wkt.size(); ++k) {
    if (wkt[k] == '"') quoted = !quoted;
    if (quoted) continue;
    depth += wkt[k] == '[' ? 1 : wkt[k] == ']' ? -1 : 0;
    if (wkt[k] != ',' || depth != 1) continue;
    if (begin > 0) return std::string(wkt.substr(begin, k - begin));
    begin = k + 1;
  }
  return std::string(wkt);
}

}  // namespace

void describe_crs(const GdalApi& api, RasterGrid& grid) {
  SpatialReference crs(api);
  if (!crs.set(grid.crs_wkt)) return;
  grid.crs_is_degrees = api.OSRIsGeographic(crs.handle()) || api.OSRIsGeocentric(crs.handle());
  if (!grid.crs_is_degrees) grid.metres_per_unit = api.OSRGetLinearUnits(crs.handle(), nullptr);
  if (!api.OSRIsCompound(crs.handle())) return;
  char* unit = nullptr;  // GDAL's own
  grid.vertical_metres = api.OSRGetTargetLinearUnits(crs.handle(), "VERT_CS", &unit);
  if (grid.value_unit.empty() && unit) grid.value_unit = unit;
  // Results are on the same map in units of their own: datum and unit of the heights are not theirs.
  grid.crs_wkt = horizontal_part(grid.crs_wkt);
}

std::optional<double> metres_of_unit(std::string_view name) {
  constexpr double kFoot = 0.3048, kSurveyFoot = 1200.0 / 3937;
  constexpr std::pair<std::string_view, double> kUnits[] = {{"m", 1},
                                                            {"metre", 1},
                                                            {"meter", 1},
                                                            {"km", 1000},
                                                            {"kilometre", 1000},
                                                            {"kilometer", 1000},
                                                            {"metres", 1},
                                                            {"meters", 1},
                                                            {"dm", 0.1},
                                                            {"cm", 0.01},
                                                            {"decimetre", 0.1},
                                                            {"decimeter", 0.1},
                                                            {"centimetre", 0.01},
                                                            {"centimeter", 0.01},
                                                            {"mm", 0.001},
                                                            {"millimetre", 0.001},
                                                            {"millimeter", 0.001},
                                                            {"in", kFoot / 12},
                                                            {"inch", kFoot / 12},
                                                            {"yd", 3 * kFoot},
                                                            {"yard", 3 * kFoot},
                                                            {"ft", kFoot},
                                                            {"foot", kFoot},
                                                            {"feet", kFoot},
                                                            {"us-ft", kSurveyFoot},
                                                            {"ftus", kSurveyFoot},
                                                            {"us survey foot", kSurveyFoot},
                                                            {"us survey feet", kSurveyFoot},
                                                            {"foot_us", kSurveyFoot}};
  std::string text;
  for (const char c : name) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [unit, metres] : kUnits)
    if (text == unit) return metres;
  return {};
}

bool is_same_crs(const std::string& wkt, const std::string& other_wkt) {
  if (wkt == other_wkt) return true;
  const GdalApi* api = find_gdal();
  if (!api) return false;
  const GdalQuiet quiet(*api);
  SpatialReference a(*api), b(*api);
  if (!a.set(wkt) || !b.set(other_wkt)) return false;
  const char* const options[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES", "CRITERION=EQUIVALENT", nullptr};
  return api->OSRIsSameEx(a.handle(), b.handle(), options) == 1;
}

void reproject(const std::string& from, const std::string& to, std::vector<double>& x, std::vector<double>& y,
               const std::string& where) {
  const GdalApi& api = require_gdal(where);
  const GdalQuiet quiet(api);
  const auto fail = [&](const std::string& what) {
    throw InputError(quiet.message(what), where, "a CRS that PROJ can transform to the raster's");
  };
  SpatialReference source(api), target(api);
  if (!source.set(from)) fail(fmt::format("its CRS {} is not understood", shown(from)));
  if (!target.set(to)) fail("the raster's CRS is not understood");
  const GdalHandle transformation = api.OCTNewCoordinateTransformation(source.handle(), target.handle());
  if (!transformation) fail("no transformation from its CRS to that of the raster");
  const int ok =
      x.empty() || api.OCTTransform(transformation, static_cast<int>(x.size()), x.data(), y.data(), nullptr);
  api.OCTDestroyCoordinateTransformation(transformation);
  if (!ok) fail("a corner cannot be transformed to the raster's CRS");
}

LonLat to_lon_lat(const RasterGrid& grid, double x, double y) {
  const std::string where = "place on Earth";
  if (grid.crs_wkt.empty()) {
    throw InputError("the raster has no coordinate reference system", where,
                     "one, to compute its location on Earth");
  }
  const GdalApi& api = require_gdal(where);
  const GdalQuiet quiet(api);
  const auto fail = [&](const char* what) {
    throw InputError(quiet.message(what), where, "a CRS that PROJ can transform to WGS 84");
  };
  SpatialReference from(api), to(api);
  if (!from.set(grid.crs_wkt)) fail("its CRS is not understood");
  if (!to.set_epsg(4326)) fail("PROJ does not know EPSG:4326 (is proj-data installed?)");
  const GdalHandle transformation = api.OCTNewCoordinateTransformation(from.handle(), to.handle());
  if (!transformation) fail("no transformation from its CRS to WGS 84");
  LonLat place{x, y};
  const int ok = api.OCTTransform(transformation, 1, &place.lon, &place.lat, nullptr);
  api.OCTDestroyCoordinateTransformation(transformation);
  if (!ok) fail("its location cannot be transformed to WGS 84");
  return place;
}

LonLat centre_lon_lat(const RasterGrid& grid) {
  const double c = static_cast<double>(grid.cols) / 2, r = static_cast<double>(grid.rows) / 2;
  const auto& t = grid.transform;
  return to_lon_lat(grid, t[0] + c * t[1] + r * t[2], t[3] + c * t[4] + r * t[5]);
}

std::string crs_from_epsg(int code) {
  const std::string where = fmt::format("EPSG:{}", code);
  const GdalApi& api = require_gdal(where);
  const GdalQuiet quiet(api);
  SpatialReference crs(api);
  if (!crs.set_epsg(code))
    throw InputError(quiet.message("PROJ does not know this EPSG code"), where,
                     "a code of the EPSG register");
  char* text = nullptr;
  api.OSRExportToWkt(crs.handle(), &text);
  const std::string wkt = text ? text : "";
  api.VSIFree(text);
  return wkt;
}

}  // namespace lockstep::io
