#include "io/vectors/geopackage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/files/atomic_file.hpp"
#include "io/rasters/gdal/gdal_api.hpp"
#include "io/vectors/rings.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr int kWkbPoint = 1, kWkbLineString = 2, kWkbMultiPolygon = 6, kRealField = 2, kTextField = 4,
              kTraditionalOrder = 0, kUnknownType = 0;
constexpr const char* kWritable = "a folder that can be written and has room";

/// The corners in parentheses, the first `corners` of them; beyond the last one the ring begins again.
std::string corners_text(const MapRing& ring, size_t corners) {
  std::string text = "(";
  for (size_t k = 0; k < corners; ++k) {
    const MapPoint& p = ring[k % ring.size()];
    text += fmt::format("{}{} {}", k ? ", " : "", p.x, p.y);
  }
  return text + ")";
}

std::string ring_text(const MapRing& ring) { return corners_text(ring, ring.size() + 1); }

int type_of(Feature::Kind kind) {
  return kind == Feature::Kind::point  ? kWkbPoint
         : kind == Feature::Kind::line ? kWkbLineString
                                       : kWkbMultiPolygon;
}

std::string wkt_of(Feature::Kind kind, const std::vector<MapRing>& rings) {
  if (kind == Feature::Kind::point) return "POINT " + corners_text(rings[0], 1);
  return kind == Feature::Kind::line ? "LINESTRING " + corners_text(rings[0], rings[0].size())
                                     : wkt_of_area(rings);
}

/// Destroyed by its function at the end of the scope.
struct Owned {
  GdalHandle handle;
  void (*destroy)(GdalHandle);
  ~Owned() {
    if (handle) destroy(handle);
  }
};

class GeoPackageWriter {
 public:
  GeoPackageWriter(const GdalApi& api, const std::filesystem::path& path)
      : api_(api), path_(path), quiet_(api), formats_(api) {
    // Else two runs of one command differ in their files.
    api_.CPLSetThreadLocalConfigOption("OGR_CURRENT_DATE", "2000-01-01T00:00:00.000Z");
  }
  ~GeoPackageWriter() { api_.CPLSetThreadLocalConfigOption("OGR_CURRENT_DATE", nullptr); }

  void write(const std::string& crs_wkt, std::span<const FeatureLayer> layers) {
    AtomicPath target(path_);
    {
      const GdalHandle driver = api_.GDALGetDriverByName("GPKG");
      if (!driver)
        throw UnsupportedError("this GDAL writes no GeoPackage", path_.string(), "a GDAL with SQLite");
      const Owned dataset{api_.GDALCreate(driver, target.temporary().c_str(), 0, 0, 0, kUnknownType, nullptr),
                          api_.GDALClose};
      require(dataset.handle, "GDAL cannot create it");
      const Owned crs{crs_wkt.empty() ? nullptr : api_.OSRNewSpatialReference(crs_wkt.c_str()),
                      api_.OSRDestroySpatialReference};
      if (crs.handle) api_.OSRSetAxisMappingStrategy(crs.handle, kTraditionalOrder);
      require(api_.GDALDatasetStartTransaction(dataset.handle, 0) == 0, "GDAL cannot begin a transaction");
      for (const FeatureLayer& layer : layers) write_layer(dataset.handle, crs.handle, layer);
      require(api_.GDALDatasetCommitTransaction(dataset.handle) == 0, "GDAL cannot write it");
    }
    target.commit();
  }

 private:
  void require(bool ok, const char* what) const {
    if (!ok) throw InputError(quiet_.message(what), path_.string(), kWritable);
  }

  void write_layer(GdalHandle dataset, GdalHandle crs, const FeatureLayer& from) {
    const GdalHandle layer =
        api_.GDALDatasetCreateLayer(dataset, from.name.c_str(), crs, type_of(from.kind), nullptr);
    require(layer, "GDAL cannot create the layer");
    for (const FeatureColumn& column : from.columns) {
      const Owned field{
          api_.OGR_Fld_Create(column.name.c_str(), column.values.index() == 0 ? kRealField : kTextField),
          api_.OGR_Fld_Destroy};
      require(api_.OGR_L_CreateField(layer, field.handle, 0) == 0, "GDAL cannot create the field");
    }
    const GdalHandle definition = api_.OGR_L_GetLayerDefn(layer);
    for (size_t k = 0; k < from.shapes.size(); ++k) {
      const Owned feature{api_.OGR_F_Create(definition), api_.OGR_F_Destroy};
      for (size_t c = 0; c < from.columns.size(); ++c)
        set_field(feature.handle, static_cast<int>(c), from.columns[c], k);
      std::string wkt = wkt_of(from.kind, from.shapes[k]);
      char* text = wkt.data();
      GdalHandle geometry = nullptr;
      require(api_.OGR_G_CreateFromWkt(&text, crs, &geometry) == 0 &&
                  api_.OGR_F_SetGeometryDirectly(feature.handle, geometry) == 0 &&
                  api_.OGR_L_CreateFeature(layer, feature.handle) == 0,
              "GDAL cannot write the feature");
    }
  }

  void set_field(GdalHandle feature, int number, const FeatureColumn& column, size_t k) const {
    if (const auto* texts = std::get_if<std::vector<std::string>>(&column.values))
      api_.OGR_F_SetFieldString(feature, number, (*texts)[k].c_str());
    else if (const double value = std::get<std::vector<double>>(column.values)[k]; std::isfinite(value))
      api_.OGR_F_SetFieldDouble(feature, number, value);
  }

  const GdalApi& api_;
  const std::filesystem::path path_;
  const GdalQuiet quiet_;
  const VectorFormats formats_;
};

}  // namespace

std::string wkt_of_area(const std::vector<MapRing>& rings) {
  const std::vector<std::vector<size_t>> around = rings_around(rings);
  std::string text;
  for (size_t k = 0; k < rings.size(); ++k) {
    if (around[k].size() % 2) continue;
    text += (text.empty() ? "(" : ", (") + ring_text(rings[k]);
    for (size_t hole = 0; hole < rings.size(); ++hole)
      if (around[hole].size() == around[k].size() + 1 && std::ranges::count(around[hole], k))
        text += ", " + ring_text(rings[hole]);
    text += ")";
  }
  return "MULTIPOLYGON (" + text + ")";
}

void write_geopackage(const std::filesystem::path& path, const std::string& crs_wkt,
                      std::span<const FeatureLayer> layers) {
  GeoPackageWriter(require_gdal(path.string()), path).write(crs_wkt, layers);
}

}  // namespace lockstep::io
