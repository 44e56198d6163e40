#include "io/rasters/raster.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/atomic_file.hpp"
#include "io/arrays/npy.hpp"
#include "io/rasters/gdal_raster.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace fs = std::filesystem;
namespace {

bool is_npy(const fs::path& path) { return path.extension() == ".npy"; }

void check_window(const RasterGrid& grid, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  if (row < 0 || col < 0 || rows < 0 || cols < 0 || rows > grid.rows || cols > grid.cols ||
      row > grid.rows - rows || col > grid.cols - cols) {
    throw InternalError(fmt::format("window {}+{} x {}+{}", row, rows, col, cols), "raster",
                        fmt::format("a window inside {} x {} cells", grid.rows, grid.cols));
  }
}

// A header may claim any size; the claim is checked before memory is touched.
void require_memory(const RasterGrid& grid, const std::string& where) {
  const double wanted = static_cast<double>(grid.rows) * static_cast<double>(grid.cols) * sizeof(float);
  const double available =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (wanted > available) {
    throw InputError(
        fmt::format("{} x {} cells need {:.1f} GiB of memory", grid.rows, grid.cols, wanted / (1 << 30)),
        where, fmt::format("a raster that fits into this machine's {:.1f} GiB", available / (1 << 30)));
  }
}

// `.npy` has no georeference: the pixel size must come from the caller.
class NpyReader : public RasterReader {
 public:
  NpyReader(const fs::path& path, const RasterReadOptions& options) : where_(path.string()) {
    values_ = read_npy(path);
    if (values_.rank() != 2 || values_.empty()) {
      throw InputError(fmt::format("an array of shape {}", to_string(values_.shape())), where_,
                       "a raster of two axes, rows and columns, each at least 1");
    }
    values_ = values_.to(Storage::f32);
    grid_.rows = values_.size(0);
    grid_.cols = values_.size(1);
    if (options.pixel_size) {
      grid_.has_transform = true;
      grid_.transform = {0, *options.pixel_size, 0, static_cast<double>(grid_.rows) * *options.pixel_size,
                         0, -*options.pixel_size};
    }
  }
  void read(int64_t row, int64_t col, int64_t rows, int64_t cols, float* out) override {
    check_window(grid_, row, col, rows, cols);
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = values_.as<float>().data() + (row + r) * grid_.cols + col;
      std::copy(from, from + cols, out + r * cols);
    }
  }

 private:
  std::string where_;
  Array values_;
};

class NpyWriter : public RasterWriter {
 public:
  NpyWriter(const fs::path& path, const RasterGrid& grid) : path_(path), grid_(grid) {
    const std::string header = encode_npy_header(Storage::f32, {grid.rows, grid.cols});
    data_offset_ = static_cast<int64_t>(header.size());
    descriptor_ = ::open(path_.temporary().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(errno);
    put(std::as_bytes(std::span(header)), 0);
    // The whole size at once, so that a full disk shows here where the file system can tell.
    if (::ftruncate(descriptor_, data_offset_ + grid.rows * grid.cols * int64_t{4}) != 0) fail(errno);
  }
  ~NpyWriter() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  void write(int64_t row, int64_t col, int64_t rows, int64_t cols, const float* values) override {
    check_window(grid_, row, col, rows, cols);
    const bool whole_rows = cols == grid_.cols;
    for (int64_t r = 0; r < rows; r += whole_rows ? rows : 1) {
      const auto count = static_cast<size_t>(whole_rows ? rows * cols : cols);
      put(std::as_bytes(std::span(values + r * cols, count)),
          data_offset_ + ((row + r) * grid_.cols + col) * 4);
    }
  }
  void commit() override {
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail(errno);
    path_.commit();
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw InputError(fmt::format("cannot write the file: {}", std::strerror(error)), path_.target().string(),
                     "a folder that can be written and has room");
  }
  void put(std::span<const std::byte> bytes, int64_t offset) {
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail(written == 0 ? ENOSPC : errno);
      bytes = bytes.subspan(static_cast<size_t>(written));
      offset += written;
    }
  }
  AtomicPath path_;
  const RasterGrid grid_;
  int descriptor_ = -1;
  int64_t data_offset_ = 0;
};

}  // namespace

std::unique_ptr<RasterReader> RasterReader::open(const fs::path& path, const RasterReadOptions& options) {
  if (options.pixel_size && !(*options.pixel_size > 0 && std::isfinite(*options.pixel_size))) {
    throw InputError(fmt::format("pixel size {}", *options.pixel_size), path.string(), "metres above 0");
  }
  std::error_code error;
  if (is_npy(path)) return std::make_unique<NpyReader>(path, options);
  return open_gdal_reader(path, options);
}

Raster read_raster(const fs::path& path, const RasterReadOptions& options) {
  const auto reader = RasterReader::open(path, options);
  Raster raster;
  static_cast<RasterGrid&>(raster) = reader->grid();
  require_memory(raster, path.string());
  raster.values.resize(static_cast<size_t>(raster.rows * raster.cols));
  reader->read(0, 0, raster.rows, raster.cols, raster.values.data());
  return raster;
}

std::unique_ptr<RasterWriter> RasterWriter::create(const fs::path& path, const RasterGrid& grid) {
  if (grid.rows < 1 || grid.cols < 1) {
    throw InternalError(fmt::format("{} x {} cells", grid.rows, grid.cols), path.string(),
                        "a raster with cells");
  }
  if (is_npy(path)) return std::make_unique<NpyWriter>(path, grid);
  return create_gdal_writer(path, grid);
}

void write_raster(const fs::path& path, const RasterGrid& grid, const std::vector<float>& values) {
  if (static_cast<int64_t>(values.size()) != grid.rows * grid.cols) {
    throw InternalError(fmt::format("{} values", values.size()), path.string(),
                        fmt::format("{} x {} cells", grid.rows, grid.cols));
  }
  const auto writer = RasterWriter::create(path, grid);
  writer->write(0, 0, grid.rows, grid.cols, values.data());
  writer->commit();
}

void require_square_metres(const RasterGrid& grid, const std::string& where) {
  if (!grid.has_transform) {
    throw InputError("the raster has no georeference", where, "a pixel size in metres")
        .with_hint("give it with --pixel-size");
  }
  if (grid.crs_is_degrees) {
    throw InputError("its coordinates are degrees", where,
                     "a projected CRS in metres, since heights are metres")
        .with_hint(
            "reproject it first, e.g. gdalwarp -t_srs EPSG:<projected CRS of the place> in.tif out.tif");
  }
  if (std::abs(grid.metres_per_unit - 1) > 1e-9) {
    throw InputError(fmt::format("one unit of its CRS is {} m", grid.metres_per_unit), where,
                     "a CRS in metres")
        .with_hint(
            "reproject it first, e.g. gdalwarp -t_srs EPSG:<projected CRS of the place> in.tif out.tif");
  }
  const auto& t = grid.transform;
  for (const double value : t) {
    if (!std::isfinite(value)) throw InputError("its transform is not finite", where, "six finite numbers");
  }
  const double size = std::max(std::abs(t[1]), std::abs(t[5]));
  if (!(size > 0)) throw InputError("its pixels have no size", where, "a pixel size in metres above 0");
  if (std::abs(t[2]) > 1e-9 * size || std::abs(t[4]) > 1e-9 * size) {
    throw InputError("the raster is rotated", where, "rows that run from west to east")
        .with_hint("gdalwarp makes it north up");
  }
  if (t[1] < 0 || t[5] > 0) {
    throw InputError("the raster is mirrored", where,
                     "its first row in the north and its first column in the west")
        .with_hint("gdalwarp makes it north up");
  }
  if (std::abs(t[1] + t[5]) > 1e-6 * size) {
    throw InputError(fmt::format("its pixels are {} m by {} m", t[1], -t[5]), where, "square pixels")
        .with_hint("gdalwarp -tr SIZE SIZE makes them square");
  }
}

void require_same_grid(const RasterGrid& grid, const std::string& where, const RasterGrid& other,
                       const std::string& other_where) {
  if (grid.rows != other.rows || grid.cols != other.cols) {
    throw InputError(fmt::format("{} x {} cells (rows x columns)", other.rows, other.cols), other_where,
                     fmt::format("{} x {} as in {}", grid.rows, grid.cols, where));
  }
  if (grid.has_transform && other.has_transform) {
    // A hundredth of a pixel, over the whole raster: what rounding in text formats may cost, and far below
    // any effect.
    const double size = std::max(std::abs(grid.transform[1]), std::abs(grid.transform[5]));
    for (size_t k = 0; k < 6; ++k) {
      const double span = k == 1 || k == 4   ? static_cast<double>(grid.cols)
                          : k == 2 || k == 5 ? static_cast<double>(grid.rows)
                                             : 1.0;
      if (!(std::abs(grid.transform[k] - other.transform[k]) * span <= 0.01 * size)) {
        const auto text = [](const RasterGrid& g) {
          return fmt::format("corner {}, {} and pixels {} x {}", g.transform[0], g.transform[3],
                             g.transform[1], -g.transform[5]);
        };
        throw InputError(text(other), other_where, fmt::format("{} as in {}", text(grid), where));
      }
    }
  }
  if (!grid.crs_wkt.empty() && !other.crs_wkt.empty() && grid.crs_wkt != other.crs_wkt &&
      !is_same_crs(grid.crs_wkt, other.crs_wkt)) {
    throw InputError("another coordinate reference system", other_where, fmt::format("that of {}", where));
  }
}

LonLat centre_lon_lat(const RasterGrid& grid) {
  const double c = static_cast<double>(grid.cols) / 2, r = static_cast<double>(grid.rows) / 2;
  const auto& t = grid.transform;
  return to_lon_lat(grid, t[0] + c * t[1] + r * t[2], t[3] + c * t[4] + r * t[5]);
}

}  // namespace lockstep::io
