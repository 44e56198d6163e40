// GeoPackages and shapefiles through GDAL.
#include <fmt/format.h>

#include "core/files/folder.hpp"
#include "core/record/journal.hpp"
#include "io/rasters/gdal/gdal_api.hpp"
#include "io/text/file.hpp"
#include "io/vectors/features.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr unsigned kOpenVector = 0x04;
constexpr const char* kOgrExpected = "a GeoPackage or a shapefile";

struct OgrDataset {
  const GdalApi& api;
  GdalHandle handle;
  ~OgrDataset() {
    if (handle) api.GDALClose(handle);
  }
};

std::string wkt_of(const GdalApi& api, GdalHandle geometry) {
  char* text = nullptr;
  const int error = api.OGR_G_ExportToWkt(geometry, &text);
  const std::string wkt = error == 0 && text ? text : "";
  api.VSIFree(text);
  return wkt;
}

GdalHandle layer_of(const GdalApi& api, GdalHandle dataset, const std::string& wanted,
                    const std::string& where) {
  std::string names;
  const int count = api.GDALDatasetGetLayerCount(dataset);
  for (int k = 0; k < count; ++k) {
    const GdalHandle layer = api.GDALDatasetGetLayer(dataset, k);
    const std::string name = api.OGR_L_GetName(layer);
    if (name == wanted || (wanted.empty() && count == 1)) return layer;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw InputError(wanted.empty() ? fmt::format("{} layers", count) : fmt::format("no layer '{}'", wanted),
                   where, fmt::format("the name of one layer: {}", names));
}

Feature ogr_feature(const GdalApi& api, GdalHandle handle, GdalHandle definition, const std::string& where) {
  Feature feature;
  feature.where = where;
  for (int k = 0; k < api.OGR_FD_GetFieldCount(definition); ++k)
    feature.fields.emplace_back(api.OGR_Fld_GetNameRef(api.OGR_FD_GetFieldDefn(definition, k)),
                                api.OGR_F_GetFieldAsString(handle, k));
  const GdalHandle geometry = api.OGR_F_GetGeometryRef(handle);
  if (!geometry) return feature;
  // Curves become chords.
  const GdalHandle straight = api.OGR_G_GetLinearGeometry(geometry, 0, nullptr);
  const std::string wkt = wkt_of(api, straight);
  api.OGR_G_DestroyGeometry(straight);
  take_wkt(wkt, feature);
  return feature;
}

}  // namespace

FeatureFile read_ogr_features(const std::filesystem::path& path, const FeatureOptions& options) {
  const std::string where = path.string();
  const GdalApi& api = require_gdal(where);
  { const InputFile readable(path, kOgrExpected); }
  journal::input(path);
  const VectorFormats formats(api);
  const GdalQuiet quiet(api);
  const OgrDataset dataset{
      api, api.GDALOpenEx(InputFolder::name_of(path).c_str(), kOpenVector, kVectorDrivers, nullptr, nullptr)};
  if (!dataset.handle) throw InputError(quiet.message("GDAL cannot read it"), where, kOgrExpected);
  const GdalHandle layer = layer_of(api, dataset.handle, options.layer, where);
  FeatureFile file;
  if (const GdalHandle crs = api.OGR_L_GetSpatialRef(layer)) {
    char* text = nullptr;
    api.OSRExportToWkt(crs, &text);
    file.crs = text ? text : "";
    api.VSIFree(text);
  }
  const GdalHandle definition = api.OGR_L_GetLayerDefn(layer);
  while (const GdalHandle handle = api.OGR_L_GetNextFeature(layer)) {
    const std::string place = fmt::format("{}, feature {}", where, file.features.size() + 1);
    try {
      file.features.push_back(ogr_feature(api, handle, definition, place));
    } catch (...) {
      api.OGR_F_Destroy(handle);
      throw;
    }
    api.OGR_F_Destroy(handle);
  }
  return file;
}

}  // namespace lockstep::io
