#include "io/rasters/gdal/cog.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/files/atomic_file.hpp"
#include "io/rasters/gdal/gdal_api.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr int kCells = 6;                         // GDT_Float32
constexpr int64_t kManyCells = int64_t{1} << 22;  // for one thread
constexpr int kGdalFails = 3;                     // CE_Failure
constexpr int kBlockSide = 512;                   // of the format: smaller grids need no overview

/// A dataset that is closed with the scope.
struct OpenDataset {
  const GdalApi& api;
  GdalHandle handle;
  ~OpenDataset() {
    if (handle) api.GDALClose(handle);
  }
};

/// Overviews in memory, for those that the driver makes pass through a compressed file. They are means: the driver's cubic
/// ones exceed the range of the values.
bool build_overviews(const GdalApi& api, GdalHandle source, int side, bool all_cores) {
  std::vector<int> factors;
  for (int factor = 2; (side - 1) / (factor / 2) + 1 > kBlockSide; factor *= 2) factors.push_back(factor);
  if (factors.empty()) return true;
  if (all_cores) api.CPLSetThreadLocalConfigOption("GDAL_NUM_THREADS", "ALL_CPUS");
  const int error = api.GDALBuildOverviews(source, "AVERAGE", static_cast<int>(factors.size()),
                                           factors.data(), 0, nullptr, nullptr, nullptr);
  if (all_cores) api.CPLSetThreadLocalConfigOption("GDAL_NUM_THREADS", nullptr);
  return error < kGdalFails;
}

}  // namespace

void write_cog(const std::filesystem::path& path, const RasterGrid& grid, const RasterLabels& labels,
               const float* values) {
  const GdalApi& api = require_gdal(path.string());
  const GdalQuiet quiet(api);
  AtomicPath target(path);
  const auto require = [&](bool ok, const char* what) {
    if (!ok)
      throw InputError(quiet.message(what), path.string(), "a folder that can be written and has room");
  };
  const int rows = int(grid.rows), cols = int(grid.cols);
  const GdalHandle memory = api.GDALGetDriverByName("MEM"), driver = api.GDALGetDriverByName("COG");
  if (!memory || !driver)
    throw UnsupportedError("this GDAL writes no cloud-optimised GeoTIFF", path.string(),
                           "GDAL 3.1 or newer, or --format nc or npy");
  const OpenDataset source{api, api.GDALCreate(memory, "", cols, rows, 1, kCells, nullptr)};
  require(source.handle, "GDAL cannot create the grid in memory");
  const GdalHandle band = api.GDALGetRasterBand(source.handle, 1);
  auto transform = grid.transform;
  if (grid.has_transform)
    require(api.GDALSetGeoTransform(source.handle, transform.data()) == 0,
            "GDAL cannot set the georeference");
  if (!grid.crs_wkt.empty())
    require(api.GDALSetProjection(source.handle, grid.crs_wkt.c_str()) == 0,
            "GDAL cannot set the projection");
  require(api.GDALSetRasterNoDataValue(band, std::numeric_limits<double>::quiet_NaN()) == 0,
          "GDAL cannot set the nodata value");
  if (!labels.title.empty()) api.GDALSetDescription(band, labels.title.c_str());
  if (!labels.unit.empty()) api.GDALSetRasterUnitType(band, labels.unit.c_str());
  for (const auto& [name, value] : metadata_of(labels))
    api.GDALSetMetadataItem(source.handle, name.c_str(), value.c_str(), nullptr);
  // GDAL only reads what it writes.
  require(
      api.GDALRasterIO(band, 1, 0, 0, cols, rows, const_cast<float*>(values), cols, rows, kCells, 0, 0) == 0,
      "GDAL cannot store the cells");
  const bool all_cores = grid.rows * grid.cols >= kManyCells;
  require(build_overviews(api, source.handle, std::max(rows, cols), all_cores),
          "GDAL cannot create overviews");
  const char* options[] = {"COMPRESS=DEFLATE",
                           "PREDICTOR=YES",
                           "LEVEL=1",
                           "BIGTIFF=IF_SAFER",
                           all_cores ? "NUM_THREADS=ALL_CPUS" : nullptr,
                           nullptr};
  {
    const OpenDataset copy{api, api.GDALCreateCopy(driver, target.temporary().c_str(), source.handle, 0,
                                                   const_cast<char**>(options), nullptr, nullptr)};
    require(copy.handle, "GDAL cannot write the file");
    api.GDALFlushCache(copy.handle);
    require(api.CPLGetLastErrorType() < kGdalFails, "GDAL cannot write the file");
  }
  target.commit();
}

}  // namespace lockstep::io
