#include "io/rasters/gdal_raster.hpp"

#include <fmt/format.h>

#include <cmath>
#include <mutex>

#include "core/atomic_file.hpp"
#include "core/dynamic_library.hpp"
#include "io/rasters/gdal_module.h"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace fs = std::filesystem;
namespace {

constexpr const char* kModule = "liblockstep_gdal.so";
constexpr int kErrorSize = 600;

struct Module {
  DynamicLibrary library;
  const LockstepGdalApi* api = nullptr;
  std::string reason;
};

const Module& module() {
  static const Module instance = [] {
    Module m;
    m.library = LibrarySearch{{kModule}, {}}.load(&m.reason);
    if (!m.library) return m;
    auto* get = m.library.function<const LockstepGdalApi*()>("lockstep_gdal_api");
    m.api = get ? get() : nullptr;
    if (m.api && m.api->abi != LOCKSTEP_GDAL_ABI) {
      m.reason = fmt::format("{} is of interface version {}, not {}", m.library.path(), m.api->abi,
                             LOCKSTEP_GDAL_ABI);
      m.api = nullptr;
    } else if (!m.api) {
      m.reason = fmt::format("{} is not Lockstep's GDAL module", m.library.path());
    }
    return m;
  }();
  return instance;
}

const LockstepGdalApi& api(const std::string& where) {
  const Module& m = module();
  if (m.api) return *m.api;
  throw UnsupportedError(
      fmt::format("the GDAL module cannot be loaded ({})", m.reason), where,
      fmt::format("{} and the package libgdal32 (Debian 12; libgdal34t64 on Ubuntu 24.04)", kModule))
      .with_hint("without it .npy rasters work: convert the file, or install the package");
}

class GdalReader : public RasterReader {
 public:
  GdalReader(const fs::path& path, const RasterReadOptions& options)
      : where_(path.string()), api_(api(where_)) {
    LockstepGdalGrid grid{};
    char error[kErrorSize] = "";
    // GDAL also opens names that are no files, such as /vsizip/… and sub-datasets with colons.
    std::error_code ignored;
    if (!fs::exists(path, ignored) && !where_.starts_with("/vsi") && where_.find(':') == std::string::npos) {
      throw InputError("the file does not exist", where_, "a raster that GDAL reads, or .npy");
    }
    dataset_ = api_.open(path.c_str(), options.band, &grid, error, kErrorSize);
    if (!dataset_) throw InputError(error, where_, "a raster that GDAL reads, or .npy");
    grid_.rows = grid.rows;
    grid_.cols = grid.cols;
    grid_.has_transform = grid.has_transform != 0;
    if (grid_.has_transform) std::copy(grid.transform, grid.transform + 6, grid_.transform.begin());
    grid_.crs_wkt = grid.crs_wkt;
    grid_.crs_is_degrees = grid.crs_is_degrees != 0;
    grid_.metres_per_unit = grid.metres_per_unit;
    if (grid.has_nodata) grid_.nodata = grid.nodata;
    if (!grid_.has_transform && options.pixel_size) {
      const double size = *options.pixel_size;
      grid_.has_transform = true;
      grid_.transform = {0, size, 0, static_cast<double>(grid_.rows) * size, 0, -size};
    }
  }
  ~GdalReader() override {
    char error[kErrorSize];
    if (dataset_) api_.close(dataset_, error, kErrorSize);
  }
  void read(int64_t row, int64_t col, int64_t rows, int64_t cols, float* out) override {
    char error[kErrorSize] = "";
    if (!api_.read(dataset_, row, col, rows, cols, out, error, kErrorSize)) {
      throw InputError(error, where_, "a whole file");
    }
  }

 private:
  const std::string where_;
  const LockstepGdalApi& api_;
  LockstepGdalDataset* dataset_ = nullptr;
};

class GdalWriter : public RasterWriter {
 public:
  GdalWriter(const fs::path& path, const RasterGrid& grid) : api_(api(path.string())), path_(path) {
    LockstepGdalGrid spec{};
    spec.rows = grid.rows;
    spec.cols = grid.cols;
    spec.has_transform = grid.has_transform;
    std::copy(grid.transform.begin(), grid.transform.end(), spec.transform);
    spec.crs_wkt = grid.crs_wkt.c_str();
    spec.has_nodata = 1;
    spec.nodata = grid.nodata.value_or(kDefaultNodata);
    // A nodata value beyond float32 would be written as infinity and lost.
    if (std::isfinite(spec.nodata) && !std::isfinite(static_cast<float>(spec.nodata)))
      spec.nodata = kDefaultNodata;
    char error[kErrorSize] = "";
    dataset_ = api_.create(path_.temporary().c_str(), &spec, error, kErrorSize);
    if (!dataset_) fail(error);
  }
  ~GdalWriter() override {
    char error[kErrorSize];
    if (dataset_) api_.close(dataset_, error, kErrorSize);
  }
  void write(int64_t row, int64_t col, int64_t rows, int64_t cols, const float* values) override {
    char error[kErrorSize] = "";
    if (!api_.write(dataset_, row, col, rows, cols, values, error, kErrorSize)) fail(error);
  }
  void commit() override {
    char error[kErrorSize] = "";
    const int closed = api_.close(dataset_, error, kErrorSize);
    dataset_ = nullptr;
    if (!closed) fail(error);
    path_.commit();
  }

 private:
  [[noreturn]] void fail(const char* error) const {
    throw InputError(error, path_.target().string(), "a folder that can be written and has room");
  }
  const LockstepGdalApi& api_;
  AtomicPath path_;
  LockstepGdalDataset* dataset_ = nullptr;
};

}  // namespace

std::unique_ptr<RasterReader> open_gdal_reader(const fs::path& path, const RasterReadOptions& options) {
  return std::make_unique<GdalReader>(path, options);
}
std::unique_ptr<RasterWriter> create_gdal_writer(const fs::path& path, const RasterGrid& grid) {
  return std::make_unique<GdalWriter>(path, grid);
}

bool is_same_crs(const std::string& wkt, const std::string& other_wkt) {
  if (wkt == other_wkt) return true;
  const Module& m = module();
  return m.api && m.api->same_crs(wkt.c_str(), other_wkt.c_str()) == 1;
}

std::string gdal_unavailable_reason() {
  const Module& m = module();
  return m.api ? std::string() : m.reason;
}

LonLat to_lon_lat(const RasterGrid& grid, double x, double y) {
  if (grid.crs_wkt.empty()) {
    throw InputError("the raster names no coordinate reference system", "sun position",
                     "one, to find its place on Earth");
  }
  LonLat place;
  char error[kErrorSize] = "";
  if (!api("sun position")
           .to_lon_lat(grid.crs_wkt.c_str(), x, y, &place.lon, &place.lat, error, kErrorSize)) {
    throw InputError(error, "sun position", "a CRS that PROJ can transform to WGS 84");
  }
  return place;
}

std::string crs_from_epsg(int code) {
  char wkt[16384] = "", error[kErrorSize] = "";
  if (!api(fmt::format("EPSG:{}", code)).crs_from_epsg(code, wkt, sizeof wkt, error, kErrorSize)) {
    throw InputError(error, fmt::format("EPSG:{}", code), "a code of the EPSG register");
  }
  return wkt;
}

}  // namespace lockstep::io
