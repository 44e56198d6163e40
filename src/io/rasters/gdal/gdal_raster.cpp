// Rasters of all formats but .npy, through GDAL.
#include "io/rasters/gdal/gdal_raster.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "core/files/atomic_file.hpp"
#include "core/files/folder.hpp"
#include "core/record/journal.hpp"
#include "io/rasters/crs.hpp"
#include "io/rasters/gdal/gdal_api.hpp"
#include "io/rasters/gdal/vrt.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "io/rasters/raster_bands.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace fs = std::filesystem;
namespace {

// Values of GDAL's enumerations.
constexpr int kByte = 1, kUInt16 = 2, kInt16 = 3, kFloat32 = 6, kFloat64 = 7;  // GDALDataType
constexpr unsigned kOpenRaster = 0x02, kOpenVerbose = 0x40;
constexpr int kMaskPerDataset = 0x02, kMaskAlpha = 0x04;
constexpr int kFailure = 3;  // CPLErr

constexpr int kTileSide = 256;
constexpr double kMissingByte = 255;
constexpr double kLargestBlock = double{1 << 29};

// A dataset with its first error as an InputError. GDAL's datasets may be used by one thread at a time.
class Dataset {
 public:
  Dataset(const GdalApi& api, GdalHandle handle) : api_(api), handle_(handle) {}
  ~Dataset() {
    if (!handle_) return;
    const GdalQuiet quiet(api_);
    api_.GDALClose(handle_);
  }
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  explicit operator bool() const { return handle_ != nullptr; }
  GdalHandle handle() const { return handle_; }
  /// False where what was written cannot be flushed.
  bool close() {
    api_.GDALFlushCache(handle_);
    const int flushed = api_.CPLGetLastErrorType();
    api_.GDALClose(handle_);
    handle_ = nullptr;
    return flushed < kFailure && api_.CPLGetLastErrorType() < kFailure;
  }

 private:
  const GdalApi& api_;
  GdalHandle handle_;
};

class GdalReader : public RasterReader {
 public:
  GdalReader(const fs::path& path, const RasterReadOptions& options)
      : where_(path.string()), api_(require_gdal(where_)), dataset_(api_, open(path)) {
    const GdalQuiet quiet(api_);
    grid_.rows = api_.GDALGetRasterYSize(dataset_.handle());
    grid_.cols = api_.GDALGetRasterXSize(dataset_.handle());
    grid_.bands = api_.GDALGetRasterCount(dataset_.handle());
    const int band = options.band.value_or(1);
    if (band < 1 || band > grid_.bands) fail(fmt::format("band {} of {} was requested", band, grid_.bands));
    band_ = api_.GDALGetRasterBand(dataset_.handle(), band);
    if (!band_) fail(quiet.message("GDAL cannot open its band"));
    check_cells();
    const char* driver = api_.GDALGetDriverShortName(api_.GDALGetDatasetDriver(dataset_.handle()));
    is_text_ = driver && std::string_view(driver) == "AAIGrid";
    take_meaning();
    grid_.has_transform = api_.GDALGetGeoTransform(dataset_.handle(), grid_.transform.data()) == 0;
    const char* wkt = api_.GDALGetProjectionRef(dataset_.handle());
    grid_.crs_wkt = wkt ? wkt : "";
    const char* unit = api_.GDALGetRasterUnitType(band_);
    grid_.value_unit = unit ? unit : "";
    describe_crs(api_, grid_);
    if (options.heights) take_metres();
    if (!grid_.has_transform && options.pixel_size) grid_.place(*options.pixel_size);
  }

  void read(int64_t row, int64_t col, int64_t rows, int64_t cols, float* out) override {
    grid_.check_window(row, col, rows, cols);
    const std::lock_guard lock(mutex_);
    const GdalQuiet quiet(api_);
    const Window window{int(row), int(col), int(rows), int(cols)};
    const int type = api_.GDALGetRasterDataType(band_);
    const bool narrow = type == kFloat32 || type == kByte || type == kInt16 || type == kUInt16;
    if (!find_rows(window.row)) fail(quiet.message("GDAL cannot read its cells"));
    if (narrow) {
      if (!transfer(band_, window, out, kFloat32)) fail(quiet.message("GDAL cannot read its cells"));
      to_heights(out, window.count(), out);
    } else {
      const InputClaim claim(double(window.count()) * sizeof(double), "a window of its cells", where_);
      std::vector<double> cells(window.count());
      if (!transfer(band_, window, cells.data(), kFloat64)) fail(quiet.message("GDAL cannot read its cells"));
      to_heights(cells.data(), cells.size(), out);
    }
    if (!use_mask_) return;
    const InputClaim claim(double(window.count()), "a window of its mask", where_);
    std::vector<uint8_t> mask(window.count());
    if (!transfer(api_.GDALGetMaskBand(band_), window, mask.data(), kByte))
      fail(quiet.message("GDAL cannot read its mask"));
    for (size_t k = 0; k < mask.size(); ++k) {
      if (mask[k] == 0) out[k] = std::numeric_limits<float>::quiet_NaN();
    }
  }

  std::vector<BandLabel> labels() const {
    const auto text = [&](GdalHandle object, const std::string& name) {
      const char* value = api_.GDALGetMetadataItem(object, name.c_str(), nullptr);
      return std::string(value ? value : "");
    };
    // "{direction}": the axes of a NetCDF variable before y and x.
    std::string dimension = text(dataset_.handle(), "NETCDF_DIM_EXTRA");
    std::erase_if(dimension, [](char c) { return c == '{' || c == '}'; });
    const std::string unit = dimension.empty() ? "" : text(dataset_.handle(), dimension + "#units");
    std::vector<BandLabel> all;
    for (int band = 1; band <= grid_.bands; ++band) {
      const GdalHandle handle = api_.GDALGetRasterBand(dataset_.handle(), band);
      if (!dimension.empty()) {
        all.push_back({text(handle, "NETCDF_DIM_" + dimension), dimension, unit});
      } else {
        const char* description = api_.GDALGetDescription(handle);
        all.push_back({description ? description : "", "", ""});
      }
    }
    return all;
  }

 private:
  struct Window {
    int row, col, rows, cols;
    size_t count() const { return size_t(rows) * size_t(cols); }
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(what, where_, "a raster that GDAL reads, or .npy");
  }
  /// The file of NETCDF:"FILE":VARIABLE, or the path itself.
  static fs::path netcdf_file(const fs::path& path) {
    std::string text = path.string();
    constexpr std::string_view kPrefix = "NETCDF:";
    if (!text.starts_with(kPrefix)) return path;
    text = text.substr(kPrefix.size(), text.rfind(':') - kPrefix.size());
    std::erase(text, '"');
    return text;
  }
  /// The file on disk that /vsizip/{FILE}/NAME, /vsizip/FILE/NAME and the like read; else the path itself.
  static fs::path file_behind(const fs::path& path) {
    std::string text = path.string();
    if (!text.starts_with("/vsi")) return path;
    text = text.substr(std::min(text.find('/', 1), text.size() - 1) + 1);
    std::erase_if(text, [](char c) { return c == '{' || c == '}'; });
    fs::path file = text;
    std::error_code ignored;
    while (file.has_parent_path() && !fs::is_regular_file(file, ignored) && file != file.parent_path())
      file = file.parent_path();
    return file;
  }
  GdalHandle open(const fs::path& path) const {
    // GDAL also opens names that are no files, such as /vsizip/… and sub-datasets with colons.
    std::error_code ignored;
    if (!fs::exists(path, ignored) && !where_.starts_with("/vsi") && where_.find(':') == std::string::npos)
      fail("the file does not exist");
    // GDAL reads NetCDF by the same library.
    if (const fs::path file = netcdf_file(path); fs::is_regular_file(file, ignored)) check_netcdf(file);
    constexpr const char* kVirtual[] = {"VRT", nullptr};
    const bool is_virtual = path.extension() == ".vrt";
    const std::string name = is_virtual ? checked_vrt(path) : InputFolder::name_of(path).string();
    const GdalQuiet quiet(api_);
    const GdalHandle handle = api_.GDALOpenEx(name.c_str(), kOpenRaster | kOpenVerbose,
                                              is_virtual ? kVirtual : kRasterDrivers, nullptr, nullptr);
    if (const fs::path file = file_behind(path); handle && fs::is_regular_file(file, ignored))
      journal::input(file);
    if (!handle) fail(quiet.message("GDAL cannot open it"));
    return handle;
  }
  // GDAL reads whole blocks, of all bands where they are interleaved, so a damaged header would take all
  // memory.
  void check_cells() {
    const int type = api_.GDALGetRasterDataType(band_);
    if (api_.GDALDataTypeIsComplex(type)) fail("its cells are complex numbers");
    int cols = 0, rows = 0;
    api_.GDALGetBlockSize(band_, &cols, &rows);
    const char* interleave = api_.GDALGetMetadataItem(dataset_.handle(), "INTERLEAVE", "IMAGE_STRUCTURE");
    const bool mixed = interleave && std::string_view(interleave) == "PIXEL";
    const double bytes =
        double(cols) * double(rows) * (mixed ? grid_.bands : 1) * api_.GDALGetDataTypeSizeBytes(type);
    if (cols < 1 || rows < 1 || bytes > kLargestBlock)
      fail("its blocks are larger than 512 MiB: the file is damaged or needs smaller tiles");
    block_ = InputClaim(bytes, "a block", where_);
  }
  void take_meaning() {
    int exists = 0;
    const double nodata = api_.GDALGetRasterNoDataValue(band_, &exists);
    if (exists) nodata_ = nodata;
    const double scale = api_.GDALGetRasterScale(band_, &exists);
    if (exists) scale_ = scale;
    const double offset = api_.GDALGetRasterOffset(band_, &exists);
    if (exists) offset_ = offset;
    use_mask_ = (api_.GDALGetMaskFlags(band_) & (kMaskPerDataset | kMaskAlpha)) != 0;
  }
  void take_metres() {
    const std::optional<double> band = metres_of_unit(grid_.value_unit);
    const double vertical = grid_.vertical_metres;
    if (band && vertical > 0 && std::abs(*band / vertical - 1) > 1e-3)
      throw InputError(
          fmt::format("heights in {}, but a vertical CRS of {:g} m a unit", grid_.value_unit, vertical),
          where_, "one unit of height")
          .with_hint("gdal_edit.py -units m FILE names the unit of the values");
    const double metres = band ? *band : vertical > 0 ? vertical : 1;
    scale_ *= metres;
    offset_ *= metres;
  }
  bool transfer(GdalHandle band, const Window& w, void* cells, int type) const {
    return api_.GDALRasterIO(band, 0, w.col, w.row, w.cols, w.rows, cells, w.cols, w.rows, type, 0, 0) == 0;
  }
  /// False where the file ends before this row. To find a row of a text grid, its driver reads all before it,
  /// and where one of those is missing, all before that one again and again: rows are therefore read in order,
  /// once.
  bool find_rows(int last) {
    if (!is_text_) return true;
    double cell = 0;
    for (; found_rows_ < last; ++found_rows_)
      if (!transfer(band_, {found_rows_, 0, 1, 1}, &cell, kFloat64)) return false;
    return true;
  }
  /// Compares with nodata in the type of the cells: a text such as -3.40282347e+38 must meet the float it
  /// stands for.
  template <class T>
  void to_heights(const T* cells, size_t count, float* out) const {
    const bool plain = scale_ == 1 && offset_ == 0;
    for (size_t k = 0; k < count; ++k) {
      if (nodata_ && cells[k] == static_cast<T>(*nodata_))
        out[k] = std::numeric_limits<float>::quiet_NaN();
      else
        out[k] = plain ? static_cast<float>(cells[k])
                       : static_cast<float>(static_cast<double>(cells[k]) * scale_ + offset_);
    }
  }

  const std::string where_;
  const GdalApi& api_;
  Dataset dataset_;
  GdalHandle band_ = nullptr;
  std::optional<double> nodata_;
  double scale_ = 1, offset_ = 0;
  bool use_mask_ = false, is_text_ = false;
  InputClaim block_;
  int found_rows_ = 0;
  std::mutex mutex_;
};

class GdalWriter : public RasterWriter {
 public:
  GdalWriter(const fs::path& path, const RasterGrid& grid, const RasterLabels& labels)
      : api_(require_gdal(path.string())),
        path_(path),
        grid_(grid),
        labels_(labels),
        bytes_(labels.bytes),
        dataset_(api_, create()) {
    const GdalQuiet quiet(api_);
    band_ = api_.GDALGetRasterBand(dataset_.handle(), 1);
    bool ok = true;
    if (grid.has_transform) {
      auto transform = grid.transform;
      ok = api_.GDALSetGeoTransform(dataset_.handle(), transform.data()) == 0;
    }
    if (!grid.crs_wkt.empty())
      ok = ok && api_.GDALSetProjection(dataset_.handle(), grid.crs_wkt.c_str()) == 0;
    ok = ok && api_.GDALSetRasterNoDataValue(
                   band_, bytes_ ? kMissingByte : std::numeric_limits<double>::quiet_NaN()) == 0;
    if (!ok) fail(quiet.message("GDAL cannot set the georeference"));
    if (!labels.title.empty()) api_.GDALSetDescription(band_, labels.title.c_str());
    if (!labels.unit.empty()) api_.GDALSetRasterUnitType(band_, labels.unit.c_str());
  }
  void write(int64_t row, int64_t col, int64_t rows, int64_t cols, const float* values) override {
    grid_.check_window(row, col, rows, cols);
    const std::lock_guard lock(mutex_);
    const GdalQuiet quiet(api_);
    const int h = int(rows), w = int(cols);
    std::vector<uint8_t> whole;
    const void* cells = values;
    if (bytes_) {
      for (const float v : std::span(values, size_t(rows * cols)))
        whole.push_back(std::isnan(v) ? uint8_t(kMissingByte) : uint8_t(v));
      cells = whole.data();
    }
    // GDAL only reads what it writes.
    if (api_.GDALRasterIO(band_, 1, int(col), int(row), w, h, const_cast<void*>(cells), w, h,
                          bytes_ ? kByte : kFloat32, 0, 0) != 0)
      fail(quiet.message("GDAL cannot write its cells"));
  }
  void commit() override {
    const GdalQuiet quiet(api_);
    for (const auto& [name, value] : metadata_of(labels_))
      api_.GDALSetMetadataItem(dataset_.handle(), name.c_str(), value.c_str(), nullptr);
    if (!dataset_.close()) fail(quiet.message("GDAL cannot write the file"));
    path_.commit();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(what, path_.target().string(), "a folder that can be written and has room");
  }
  GdalHandle create() const {
    const GdalQuiet quiet(api_);
    const GdalHandle driver = api_.GDALGetDriverByName("GTiff");
    if (!driver) fail("this GDAL has no GeoTIFF driver");
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    if (grid_.rows > kMost || grid_.cols > kMost) fail("a GeoTIFF holds 1 to 2^31-1 rows and columns");
    const bool tiled = grid_.rows >= kTileSide && grid_.cols >= kTileSide;
    const char* options[] = {
        "COMPRESS=DEFLATE",     bytes_ ? "PREDICTOR=1" : "PREDICTOR=3", "BIGTIFF=IF_SAFER",
        "NUM_THREADS=ALL_CPUS", tiled ? "TILED=YES" : "TILED=NO",       nullptr};
    const GdalHandle handle =
        api_.GDALCreate(driver, path_.temporary().c_str(), int(grid_.cols), int(grid_.rows), 1,
                        bytes_ ? kByte : kFloat32, const_cast<char**>(options));
    if (!handle) fail(quiet.message("GDAL cannot create it"));
    return handle;
  }

  const GdalApi& api_;
  AtomicPath path_;
  const RasterGrid grid_;
  const RasterLabels labels_;
  const bool bytes_;
  Dataset dataset_;
  GdalHandle band_ = nullptr;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<RasterReader> open_gdal_reader(const fs::path& path, const RasterReadOptions& options) {
  return std::make_unique<GdalReader>(path, options);
}
std::vector<BandLabel> band_labels(const fs::path& path) {
  if (path.extension() == ".npy") return {BandLabel()};
  return GdalReader(path, {}).labels();
}
std::unique_ptr<RasterWriter> create_gdal_writer(const fs::path& path, const RasterGrid& grid,
                                                 const RasterLabels& labels) {
  return std::make_unique<GdalWriter>(path, grid, labels);
}

}  // namespace lockstep::io
