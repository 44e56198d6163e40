// Rasters: grids of float32 with a place on the map. `.npy` is built in; all other formats go through the
// GDAL module.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::io {

/// Where a grid lies. Column c and row r (top left corner of the cell) are at
/// x = t[0] + c·t[1] + r·t[2] and y = t[3] + c·t[4] + r·t[5], in units of the CRS.
struct RasterGrid {
  int64_t rows = 0, cols = 0;
  bool has_transform = false;
  std::array<double, 6> transform = {0, 1, 0, 0, 0, -1};
  std::string crs_wkt;           ///< Empty if the file names none.
  bool crs_is_degrees = false;   ///< A geographic CRS.
  double metres_per_unit = 1.0;  ///< Of the CRS's axes, where it is a projected one.
  std::optional<double> nodata;  ///< What the file marks missing cells with. In memory they are NaN.

  /// Metres per cell; meaningful once require_square_metres() has passed.
  double pixel_size() const { return transform[1] < 0 ? -transform[1] : transform[1]; }
};

/// A whole grid in memory, row by row from the north. Missing cells are NaN.
struct Raster : RasterGrid {
  std::vector<float> values;
};

/// How to read what a file does not say by itself.
struct RasterReadOptions {
  std::optional<double> pixel_size = {};  ///< Metres; for files without a transform (`.npy`).
  int band = 1;
};

/// Reads windows of a raster of any size. read() may be called from any thread.
class RasterReader {
 public:
  /// Throws InputError if the file cannot be read as a raster, and UnsupportedError naming the package to
  /// install if it needs the GDAL module and that is absent.
  static std::unique_ptr<RasterReader> open(const std::filesystem::path& path,
                                            const RasterReadOptions& options = {});
  virtual ~RasterReader() = default;
  const RasterGrid& grid() const { return grid_; }
  /// Cells of the window, row by row, into `out` (rows·cols values). The window must lie inside the raster.
  virtual void read(int64_t row, int64_t col, int64_t rows, int64_t cols, float* out) = 0;

 protected:
  RasterGrid grid_;
};

Raster read_raster(const std::filesystem::path& path, const RasterReadOptions& options = {});

/// Writes a raster window by window and publishes it with commit(). The suffix chooses the format: `.npy`,
/// else GeoTIFF (deflated, tiled, BigTIFF where needed) through the GDAL module. write() may be called from
/// any thread.
class RasterWriter {
 public:
  /// `grid` gives size and georeference. NaN cells are written as `grid.nodata`, or as -9999 if it has none
  /// and the format is GeoTIFF; `.npy` keeps NaN.
  static std::unique_ptr<RasterWriter> create(const std::filesystem::path& path, const RasterGrid& grid);
  virtual ~RasterWriter() = default;
  virtual void write(int64_t row, int64_t col, int64_t rows, int64_t cols, const float* values) = 0;
  virtual void commit() = 0;
};

void write_raster(const std::filesystem::path& path, const RasterGrid& grid,
                  const std::vector<float>& values);

/// The value that marks missing cells in written GeoTIFFs when the input has none.
inline constexpr double kDefaultNodata = -9999.0;

/// Throws InputError unless cells are square, in metres, north up and not rotated. `where` names the file.
void require_square_metres(const RasterGrid& grid, const std::string& where);
/// Throws InputError unless shape, transform and CRS of `other` are those of `grid`. A file that names no CRS
/// or no transform is taken to lie where the other does.
void require_same_grid(const RasterGrid& grid, const std::string& where, const RasterGrid& other,
                       const std::string& other_where);

/// Empty if the GDAL module works, else the reason why it does not.
std::string gdal_unavailable_reason();

/// Longitude and latitude (degrees, WGS 84) of a point in the raster's CRS; needs the GDAL module.
struct LonLat {
  double lon = 0, lat = 0;
};
LonLat to_lon_lat(const RasterGrid& grid, double x, double y);
/// The same of the raster's centre.
LonLat centre_lon_lat(const RasterGrid& grid);
/// WKT of an EPSG code such as 3006; needs the GDAL module.
std::string crs_from_epsg(int code);

}  // namespace lockstep::io
