#include "io/rasters/raster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/files/atomic_file.hpp"
#include "core/files/folder.hpp"
#include "core/platform/parallel.hpp"
#include "core/platform/system.hpp"
#include "core/record/journal.hpp"
#include "io/arrays/frames.hpp"
#include "io/rasters/gdal/gdal_raster.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace fs = std::filesystem;
namespace {

bool is_npy(const fs::path& path) { return path.extension() == ".npy"; }

// `.npy` has no georeference: the pixel size must come from the caller. Rows of native f32 are read where they lie; all
// other arrays are held.
class NpyReader : public RasterReader {
 public:
  NpyReader(const fs::path& path, const RasterReadOptions& options) : where_(path.string()) {
    if (options.band && *options.band != 1)
      throw InputError(fmt::format("band {}", *options.band), where_,
                       "band 1, the only one of an .npy raster");
    std::error_code ignored;
    if (fs::is_regular_file(InputFolder::name_of(path), ignored)) file_.emplace(path, "an .npy file");
    const auto stored = file_ ? find_stored(*file_, where_) : std::nullopt;
    if (stored && stored->header.storage == Storage::f32 && stored->header.shape.size() == 2 &&
        stored->bytes > 0 &&
        stored->bytes == 4 * uint64_t(stored->header.shape[0]) * uint64_t(stored->header.shape[1])) {
      data_offset_ = stored->offset;
      grid_.rows = stored->header.shape[0];
      grid_.cols = stored->header.shape[1];
    } else {
      file_.reset();
      require_file_memory(path);
      values_ = read_npy(path);
      if (values_.rank() != 2 || values_.empty()) {
        throw InputError(fmt::format("an array of shape {}", to_string(values_.shape())), where_,
                         "a raster of two axes, rows and columns, each at least 1");
      }
      values_ = values_.to(Storage::f32);
      grid_.rows = values_.size(0);
      grid_.cols = values_.size(1);
    }
    journal::input(path);
    if (options.pixel_size) grid_.place(*options.pixel_size);
  }
  void read(int64_t row, int64_t col, int64_t rows, int64_t cols, float* out) override {
    grid_.check_window(row, col, rows, cols);
    // Whole rows follow each other in the file: several threads share them, each some megabytes.
    const int64_t step = cols == grid_.cols ? std::clamp<int64_t>((int64_t{1} << 20) / cols, 1, rows) : 1;
    const auto read_part = [&](int64_t part) {
      const int64_t r = part * step, first = (row + r) * grid_.cols + col,
                    count = std::min(step, rows - r) * cols;
      if (!file_)
        std::copy_n(values_.as<float>().data() + first, count, out + r * cols);
      else if (!read_at(file_->descriptor(), data_offset_ + uint64_t(first) * 4,
                        std::as_writable_bytes(std::span(out + r * cols, static_cast<size_t>(count)))))
        throw InputError("a file that cannot be read, or became shorter", where_, "a complete file");
    };
    const int64_t parts = (rows + step - 1) / step;
    if (step == 1)
      for (int64_t part = 0; part < parts; ++part) read_part(part);
    else
      platform::ThreadArena().for_parts(parts, [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part) read_part(part);
      });
  }

  bool holds_all() const override { return !file_; }

 private:
  void require_file_memory(const fs::path& path) const {
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    const auto available = static_cast<uint64_t>(platform::system_memory().total_bytes);
    if (!error && bytes > available)
      throw InputError(
          fmt::format("{:.1f} GiB that must be loaded completely because they are not f32 in C order",
                      static_cast<double>(bytes) / (1 << 30)),
          where_,
          fmt::format("f32 in C order and native byte order, which is read in parts, or a file that fits "
                      "into this machine's {:.1f} GiB",
                      static_cast<double>(available) / (1 << 30)));
  }
  std::string where_;
  Array values_;
  std::optional<InputFile> file_;  // read where its rows lie
  uint64_t data_offset_ = 0;
};

class NpyWriter : public RasterWriter {
 public:
  NpyWriter(const fs::path& path, const RasterGrid& grid) : file_(path), grid_(grid) {
    const std::string header = encode_npy_header(Storage::f32, {grid.rows, grid.cols});
    data_offset_ = static_cast<int64_t>(header.size());
    file_.write_at(0, std::as_bytes(std::span(header)));
    // The whole size at once, so that a full disk shows here where the file system can tell.
    file_.resize(data_offset_ + grid.rows * grid.cols * int64_t{4});
  }
  void write(int64_t row, int64_t col, int64_t rows, int64_t cols, const float* values) override {
    grid_.check_window(row, col, rows, cols);
    const bool whole_rows = cols == grid_.cols;
    for (int64_t r = 0; r < rows; r += whole_rows ? rows : 1) {
      const auto count = static_cast<size_t>(whole_rows ? rows * cols : cols);
      file_.write_at(data_offset_ + ((row + r) * grid_.cols + col) * 4,
                     std::as_bytes(std::span(values + r * cols, count)));
    }
  }
  void commit() override { file_.commit(); }

 private:
  AtomicFile file_;
  const RasterGrid grid_;
  int64_t data_offset_ = 0;
};

}  // namespace

std::unique_ptr<RasterReader> RasterReader::open(const fs::path& path, const RasterReadOptions& options) {
  if (options.pixel_size && !(*options.pixel_size > 0 && std::isfinite(*options.pixel_size))) {
    throw InputError(fmt::format("pixel size {}", *options.pixel_size), path.string(), "metres above 0");
  }
  if (is_npy(path)) return std::make_unique<NpyReader>(path, options);
  return open_gdal_reader(path, options);
}

void require_memory(const RasterGrid& grid, const std::string& where) {
  const double wanted = static_cast<double>(grid.rows) * static_cast<double>(grid.cols) * sizeof(float);
  const auto available = static_cast<double>(platform::system_memory().total_bytes);
  if (wanted > available) {
    throw InputError(
        fmt::format("{} x {} cells need {:.1f} GiB of memory", grid.rows, grid.cols, wanted / (1 << 30)),
        where, fmt::format("a raster that fits into this machine's {:.1f} GiB", available / (1 << 30)));
  }
}

GeoRaster read_raster(const fs::path& path, const RasterReadOptions& options) {
  const auto reader = RasterReader::open(path, options);
  GeoRaster raster;
  static_cast<RasterGrid&>(raster) = reader->grid();
  require_memory(raster, path.string());
  return within_memory(path.string(), [&] {
    InputClaim claim(4.0 * double(raster.rows) * double(raster.cols), "the raster", path.string());
    Array values(Storage::f32, {raster.rows, raster.cols});
    reader->read(0, 0, raster.rows, raster.cols, values.mutate<float>().data());
    raster.values = claimed(values, std::move(claim));
    return raster;
  });
}

std::unique_ptr<RasterWriter> RasterWriter::create(const fs::path& path, const RasterGrid& grid) {
  return create_labelled_raster(path, grid, {});
}

std::unique_ptr<RasterWriter> create_labelled_raster(const fs::path& path, const RasterGrid& grid,
                                                     const RasterLabels& labels) {
  if (grid.rows < 1 || grid.cols < 1) {
    throw InternalError(fmt::format("{} x {} cells", grid.rows, grid.cols), path.string(),
                        "a raster with cells");
  }
  if (is_npy(path)) return std::make_unique<NpyWriter>(path, grid);
  return create_gdal_writer(path, grid, labels);
}

void write_raster(const fs::path& path, const RasterGrid& grid, const Array& values) {
  if (values.shape() != Sizes{grid.rows, grid.cols}) {
    throw InternalError(fmt::format("values of shape {}", to_string(values.shape())), path.string(),
                        fmt::format("{} x {} cells", grid.rows, grid.cols));
  }
  const auto writer = RasterWriter::create(path, grid);
  writer->write(0, 0, grid.rows, grid.cols, values.as<float>().data());
  writer->commit();
}

void RasterGrid::place(double size) {
  has_transform = true;
  transform = {0, size, 0, static_cast<double>(rows) * size, 0, -size};
}

void RasterGrid::check_window(int64_t row, int64_t col, int64_t height, int64_t width) const {
  if (row < 0 || col < 0 || height < 1 || width < 1 || height > rows || width > cols || row > rows - height ||
      col > cols - width) {
    throw InternalError(fmt::format("window {}+{} x {}+{}", row, height, col, width), "raster",
                        fmt::format("a window inside {} x {} cells", rows, cols));
  }
}

}  // namespace lockstep::io
