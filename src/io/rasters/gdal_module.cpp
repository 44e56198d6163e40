// The GDAL module: the only code that links GDAL. No exception leaves it.
#include "io/rasters/gdal_module.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <gdal.h>
#include <ogr_srs_api.h>

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct LockstepGdalDataset {
  GDALDatasetH handle = nullptr;
  GDALRasterBandH band = nullptr;
  std::string wkt;
  double scale = 1, offset = 0;
  bool has_nodata = false;
  double nodata = 0;
  bool use_mask = false;
  /// Rows of a text grid that GDAL has found. To find one, its driver reads all before it, and where one of
  /// those is missing, all before that one again and again: rows are therefore read in order, once.
  bool is_text = false;
  int found_rows = 0;
  std::mutex mutex;  // GDAL's datasets may be used by one thread at a time.

  ~LockstepGdalDataset() {
    if (handle) GDALClose(handle);
  }
};

namespace {

constexpr int kBlock = 256;
constexpr double kLargestBlock = double{1 << 29};

void silent(CPLErr, CPLErrorNum, const char*) {}

// Keeps GDAL's messages off stderr while a call runs; CPLGetLastErrorMsg still has them.
struct Quiet {
  Quiet() {
    CPLPushErrorHandler(silent);
    CPLErrorReset();
  }
  ~Quiet() { CPLPopErrorHandler(); }
};

void set_error(char* error, int size, const char* what) {
  const char* detail = CPLGetLastErrorMsg();
  std::snprintf(error, static_cast<size_t>(size), "%s%s%s", what, detail && *detail ? ": " : "",
                detail ? detail : "");
  for (char* c = error; *c; ++c) {
    if (*c == '\n' || *c == '\r') *c = ' ';
  }
}

// Runs `body`, turning exceptions (memory, mostly) into the error text.
template <class Result, class Body>
Result guarded(char* error, int size, Body body) {
  const Quiet quiet;
  try {
    return body();
  } catch (const std::exception& e) { set_error(error, size, e.what()); } catch (...) {
    set_error(error, size, "unknown failure");
  }
  return Result{};
}

struct SpatialReference {
  OGRSpatialReferenceH handle = OSRNewSpatialReference(nullptr);
  SpatialReference() { OSRSetAxisMappingStrategy(handle, OAMS_TRADITIONAL_GIS_ORDER); }
  ~SpatialReference() { OSRDestroySpatialReference(handle); }
  SpatialReference(const SpatialReference&) = delete;
  SpatialReference& operator=(const SpatialReference&) = delete;
  bool set_wkt(const char* wkt) { return wkt && *wkt && OSRSetFromUserInput(handle, wkt) == OGRERR_NONE; }
};

void start() {
  static std::once_flag once;
  std::call_once(once, [] { GDALAllRegister(); });
}

void describe_crs(LockstepGdalDataset& dataset, LockstepGdalGrid& grid) {
  const char* wkt = GDALGetProjectionRef(dataset.handle);
  dataset.wkt = wkt ? wkt : "";
  grid.crs_is_degrees = 0;
  grid.metres_per_unit = 1;
  SpatialReference crs;
  if (crs.set_wkt(dataset.wkt.c_str())) {
    grid.crs_is_degrees = OSRIsGeographic(crs.handle) || OSRIsGeocentric(crs.handle);
    if (!grid.crs_is_degrees) grid.metres_per_unit = OSRGetLinearUnits(crs.handle, nullptr);
  }
  grid.crs_wkt = dataset.wkt.c_str();
}

LockstepGdalDataset* open_dataset(const char* path, int band, LockstepGdalGrid* grid, char* error,
                                  int error_size) {
  return guarded<LockstepGdalDataset*>(error, error_size, [&]() -> LockstepGdalDataset* {
    start();
    auto dataset = std::make_unique<LockstepGdalDataset>();
    dataset->handle = GDALOpenEx(path, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR, nullptr,
                                 nullptr, nullptr);
    if (!dataset->handle) return set_error(error, error_size, "GDAL cannot open it"), nullptr;
    grid->rows = GDALGetRasterYSize(dataset->handle);
    grid->cols = GDALGetRasterXSize(dataset->handle);
    grid->bands = GDALGetRasterCount(dataset->handle);
    if (band < 1 || band > grid->bands) {
      const std::string text =
          "band " + std::to_string(band) + " of " + std::to_string(grid->bands) + " was asked for";
      CPLErrorReset();
      return set_error(error, error_size, text.c_str()), nullptr;
    }
    dataset->band = GDALGetRasterBand(dataset->handle, band);
    const char* driver = GDALGetDriverShortName(GDALGetDatasetDriver(dataset->handle));
    dataset->is_text = driver && std::strcmp(driver, "AAIGrid") == 0;
    if (GDALDataTypeIsComplex(GDALGetRasterDataType(dataset->band))) {
      CPLErrorReset();
      return set_error(error, error_size, "its cells are complex numbers"), nullptr;
    }
    // GDAL reads whole blocks, of all bands where they are interleaved, so a damaged header would take all
    // memory.
    int block_cols = 0, block_rows = 0;
    GDALGetBlockSize(dataset->band, &block_cols, &block_rows);
    const char* interleave = GDALGetMetadataItem(dataset->handle, "INTERLEAVE", "IMAGE_STRUCTURE");
    const bool mixed = interleave && std::strcmp(interleave, "PIXEL") == 0;
    const double block_bytes = static_cast<double>(block_cols) * static_cast<double>(block_rows) *
                               (mixed ? grid->bands : 1) *
                               GDALGetDataTypeSizeBytes(GDALGetRasterDataType(dataset->band));
    if (block_cols < 1 || block_rows < 1 || block_bytes > kLargestBlock) {
      CPLErrorReset();
      return set_error(error, error_size, "its blocks are above 512 MiB: damaged, or to be retiled"), nullptr;
    }
    grid->has_transform = GDALGetGeoTransform(dataset->handle, grid->transform) == CE_None;
    int success = 0;
    dataset->nodata = GDALGetRasterNoDataValue(dataset->band, &success);
    dataset->has_nodata = success != 0;
    grid->has_nodata = success;
    grid->nodata = success ? dataset->nodata : 0;
    const int flags = GDALGetMaskFlags(dataset->band);
    dataset->use_mask = (flags & (GMF_PER_DATASET | GMF_ALPHA)) != 0;
    const double scale = GDALGetRasterScale(dataset->band, &success);
    if (success) dataset->scale = scale;
    const double offset = GDALGetRasterOffset(dataset->band, &success);
    if (success) dataset->offset = offset;
    describe_crs(*dataset, *grid);
    return dataset.release();
  });
}

// Compares with nodata in the type of the file: a text such as -3.40282347e+38 must meet the float it stands
// for.
template <class T>
void to_float(const LockstepGdalDataset& dataset, const std::vector<T>& cells, float* out) {
  const T nodata = static_cast<T>(dataset.nodata);
  const bool plain = dataset.scale == 1 && dataset.offset == 0;
  for (size_t k = 0; k < cells.size(); ++k) {
    if (dataset.has_nodata && cells[k] == nodata) {
      out[k] = std::numeric_limits<float>::quiet_NaN();
    } else {
      out[k] = plain ? static_cast<float>(cells[k])
                     : static_cast<float>(static_cast<double>(cells[k]) * dataset.scale + dataset.offset);
    }
  }
}

/// False where the file ends before this row.
bool find_rows(LockstepGdalDataset& dataset, int last) {
  if (!dataset.is_text) return true;
  std::vector<double> cell(1);
  for (; dataset.found_rows < last; ++dataset.found_rows) {
    if (GDALRasterIO(dataset.band, GF_Read, 0, dataset.found_rows, 1, 1, cell.data(), 1, 1, GDT_Float64, 0,
                     0) != CE_None)
      return false;
  }
  return true;
}

template <class T>
bool read_cells(LockstepGdalDataset& dataset, GDALDataType type, int row, int col, int rows, int cols,
                float* out) {
  std::vector<T> cells(static_cast<size_t>(rows) * static_cast<size_t>(cols));
  if (!find_rows(dataset, row)) return false;
  if (GDALRasterIO(dataset.band, GF_Read, col, row, cols, rows, cells.data(), cols, rows, type, 0, 0) !=
      CE_None) {
    return false;
  }
  to_float(dataset, cells, out);
  return true;
}

bool window_fits(LockstepGdalDataset& dataset, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  const int64_t height = GDALGetRasterYSize(dataset.handle), width = GDALGetRasterXSize(dataset.handle);
  return row >= 0 && col >= 0 && rows > 0 && cols > 0 && rows <= height && cols <= width &&
         row <= height - rows && col <= width - cols;
}

int read_window(LockstepGdalDataset* dataset, int64_t row, int64_t col, int64_t rows, int64_t cols,
                float* out, char* error, int error_size) {
  return guarded<int>(error, error_size, [&] {
    const std::lock_guard lock(dataset->mutex);
    if (!window_fits(*dataset, row, col, rows, cols)) {
      return set_error(error, error_size, "the window lies outside the raster"), 0;
    }
    const int r = static_cast<int>(row), c = static_cast<int>(col), h = static_cast<int>(rows),
              w = static_cast<int>(cols);
    const GDALDataType type = GDALGetRasterDataType(dataset->band);
    const bool narrow = type == GDT_Float32 || type == GDT_Byte || type == GDT_Int16 || type == GDT_UInt16;
    const bool done = narrow ? read_cells<float>(*dataset, GDT_Float32, r, c, h, w, out)
                             : read_cells<double>(*dataset, GDT_Float64, r, c, h, w, out);
    if (!done) return set_error(error, error_size, "GDAL cannot read its cells"), 0;
    if (dataset->use_mask) {
      const size_t count = static_cast<size_t>(h) * static_cast<size_t>(w);
      std::vector<uint8_t> mask(count);
      if (GDALRasterIO(GDALGetMaskBand(dataset->band), GF_Read, c, r, w, h, mask.data(), w, h, GDT_Byte, 0,
                       0) != CE_None) {
        return set_error(error, error_size, "GDAL cannot read its mask"), 0;
      }
      for (size_t k = 0; k < count; ++k) {
        if (mask[k] == 0) out[k] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    return 1;
  });
}

LockstepGdalDataset* create_dataset(const char* path, const LockstepGdalGrid* grid, char* error,
                                    int error_size) {
  return guarded<LockstepGdalDataset*>(error, error_size, [&]() -> LockstepGdalDataset* {
    start();
    GDALDriverH driver = GDALGetDriverByName("GTiff");
    if (!driver) return set_error(error, error_size, "this GDAL has no GeoTIFF driver"), nullptr;
    if (grid->rows < 1 || grid->cols < 1 || grid->rows > std::numeric_limits<int>::max() ||
        grid->cols > std::numeric_limits<int>::max()) {
      return set_error(error, error_size, "a GeoTIFF holds 1 to 2^31-1 rows and columns"), nullptr;
    }
    const bool tiled = grid->rows >= kBlock && grid->cols >= kBlock;
    const char* options[] = {"COMPRESS=DEFLATE", "PREDICTOR=3", "BIGTIFF=IF_SAFER",
                             tiled ? "TILED=YES" : "TILED=NO", nullptr};
    auto dataset = std::make_unique<LockstepGdalDataset>();
    dataset->handle = GDALCreate(driver, path, static_cast<int>(grid->cols), static_cast<int>(grid->rows), 1,
                                 GDT_Float32, const_cast<char**>(options));
    if (!dataset->handle) return set_error(error, error_size, "GDAL cannot create it"), nullptr;
    dataset->band = GDALGetRasterBand(dataset->handle, 1);
    bool ok = true;
    if (grid->has_transform) {
      double transform[6];
      std::memcpy(transform, grid->transform, sizeof transform);
      ok = ok && GDALSetGeoTransform(dataset->handle, transform) == CE_None;
    }
    if (grid->crs_wkt && *grid->crs_wkt)
      ok = ok && GDALSetProjection(dataset->handle, grid->crs_wkt) == CE_None;
    if (grid->has_nodata) ok = ok && GDALSetRasterNoDataValue(dataset->band, grid->nodata) == CE_None;
    if (!ok) return set_error(error, error_size, "GDAL cannot set the georeference"), nullptr;
    dataset->has_nodata = grid->has_nodata != 0;
    dataset->nodata = grid->nodata;
    return dataset.release();
  });
}

int write_window(LockstepGdalDataset* dataset, int64_t row, int64_t col, int64_t rows, int64_t cols,
                 const float* values, char* error, int error_size) {
  return guarded<int>(error, error_size, [&] {
    const std::lock_guard lock(dataset->mutex);
    if (!window_fits(*dataset, row, col, rows, cols)) {
      return set_error(error, error_size, "the window lies outside the raster"), 0;
    }
    std::vector<float> cells(values, values + static_cast<size_t>(rows) * static_cast<size_t>(cols));
    if (dataset->has_nodata) {
      for (float& cell : cells) {
        if (std::isnan(cell)) cell = static_cast<float>(dataset->nodata);
      }
    }
    const int h = static_cast<int>(rows), w = static_cast<int>(cols);
    if (GDALRasterIO(dataset->band, GF_Write, static_cast<int>(col), static_cast<int>(row), w, h,
                     cells.data(), w, h, GDT_Float32, 0, 0) != CE_None) {
      return set_error(error, error_size, "GDAL cannot write its cells"), 0;
    }
    return 1;
  });
}

int close_dataset(LockstepGdalDataset* dataset, char* error, int error_size) {
  const int ok = guarded<int>(error, error_size, [&] {
    GDALFlushCache(dataset->handle);
    const CPLErr flushed = CPLGetLastErrorType();
    GDALClose(dataset->handle);
    dataset->handle = nullptr;
    if (flushed >= CE_Failure || CPLGetLastErrorType() >= CE_Failure) {
      return set_error(error, error_size, "GDAL cannot write the file"), 0;
    }
    return 1;
  });
  delete dataset;
  return ok;
}

int same_crs(const char* wkt, const char* other_wkt) {
  char unused[8];
  return guarded<int>(unused, sizeof unused, [&] {
    SpatialReference a, b;
    if (!a.set_wkt(wkt) || !b.set_wkt(other_wkt)) return std::strcmp(wkt, other_wkt) == 0 ? 1 : 0;
    const char* const options[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES", "CRITERION=EQUIVALENT",
                                   nullptr};
    return OSRIsSameEx(a.handle, b.handle, options);
  });
}

int to_lon_lat(const char* wkt, double x, double y, double* lon, double* lat, char* error, int error_size) {
  return guarded<int>(error, error_size, [&] {
    SpatialReference from, to;
    if (!from.set_wkt(wkt)) return set_error(error, error_size, "its CRS is not understood"), 0;
    if (OSRImportFromEPSG(to.handle, 4326) != OGRERR_NONE) {
      return set_error(error, error_size, "PROJ does not know EPSG:4326 (is proj-data installed?)"), 0;
    }
    OGRCoordinateTransformationH transformation = OCTNewCoordinateTransformation(from.handle, to.handle);
    if (!transformation) return set_error(error, error_size, "no way from its CRS to WGS 84"), 0;
    *lon = x;
    *lat = y;
    const int ok = OCTTransform(transformation, 1, lon, lat, nullptr);
    OCTDestroyCoordinateTransformation(transformation);
    if (!ok) return set_error(error, error_size, "its place cannot be transformed to WGS 84"), 0;
    return 1;
  });
}

int crs_from_epsg(int code, char* wkt, int wkt_size, char* error, int error_size) {
  return guarded<int>(error, error_size, [&] {
    SpatialReference crs;
    if (OSRImportFromEPSG(crs.handle, code) != OGRERR_NONE) {
      return set_error(error, error_size, "PROJ does not know this EPSG code"), 0;
    }
    char* text = nullptr;
    OSRExportToWkt(crs.handle, &text);
    const std::string copy = text ? text : "";
    CPLFree(text);
    if (copy.empty() || copy.size() + 1 > static_cast<size_t>(wkt_size)) {
      return set_error(error, error_size, "its WKT is too long"), 0;
    }
    std::memcpy(wkt, copy.c_str(), copy.size() + 1);
    return 1;
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const LockstepGdalApi* lockstep_gdal_api(void) {
  static const LockstepGdalApi api = {LOCKSTEP_GDAL_ABI, open_dataset, read_window,
                                      create_dataset,    write_window, close_dataset,
                                      same_crs,          to_lon_lat,   crs_from_epsg};
  return &api;
}
