// Rasters: grids of float32 with a place on the map. `.npy` is built in; all other formats go through GDAL.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/array.hpp"

namespace lockstep::io {

/// Where a grid lies. Column c and row r (top left corner of the cell) are at
/// x = t[0] + c·t[1] + r·t[2] and y = t[3] + c·t[4] + r·t[5], in units of the CRS.
struct RasterGrid {
  int64_t rows = 0, cols = 0;
  int bands = 1;  ///< of the file
  bool has_transform = false;
  std::array<double, 6> transform = {0, 1, 0, 0, 0, -1};
  std::string crs_wkt;           ///< Of the map alone, not of heights; empty if the file names none.
  bool crs_is_degrees = false;   ///< A geographic CRS.
  double metres_per_unit = 1.0;  ///< Of the CRS's axes, where it is a projected one.
  /// Unit of the band's values as the file names it, by the band or a vertical CRS; empty where neither does.
  std::string value_unit;
  double vertical_metres = 0;  ///< Of one unit of a vertical CRS; 0 where there is none.

  /// Metres per cell; meaningful once require_square_metres() has passed, which lets width and height differ by a
  /// thousandth: their mean.
  double pixel_size() const { return (std::abs(transform[1]) + std::abs(transform[5])) / 2; }
  /// A place for a grid that has none: cells of `size` metres, the lower left corner at the origin.
  void place(double size);
  /// Throws InternalError unless the window holds cells of the grid alone.
  void check_window(int64_t row, int64_t col, int64_t rows, int64_t cols) const;
};

/// A whole grid in memory: f32 (rows, cols), row by row from the north. Cells that the file marks as missing are
/// NaN.
struct GeoRaster : RasterGrid {
  Array values;
};

/// How to read what a file does not say by itself.
struct RasterReadOptions {
  std::optional<double> pixel_size = {};  ///< Metres; for files without a transform (`.npy`).
  std::optional<int> band = {};           ///< From 1 on; 1 if not given.
  bool heights = false;  ///< Values are heights: converted to metres where the file names their unit.
};

/// Reads windows of a raster of any size. read() may be called from any thread.
class RasterReader {
 public:
  /// Throws InputError if the file cannot be read as a raster, and UnsupportedError naming the package to
  /// install if it needs GDAL and that is absent.
  static std::unique_ptr<RasterReader> open(const std::filesystem::path& path,
                                            const RasterReadOptions& options = {});
  virtual ~RasterReader() = default;
  const RasterGrid& grid() const { return grid_; }
  /// Cells of the window, row by row, into `out` (rows·cols values). The window must lie inside the raster.
  virtual void read(int64_t row, int64_t col, int64_t rows, int64_t cols, float* out) = 0;
  /// The file cannot be read in parts: all its values are held.
  virtual bool holds_all() const { return false; }

 protected:
  RasterGrid grid_;
};

/// Throws InputError where the machine cannot hold a whole grid: a header may claim any size.
void require_memory(const RasterGrid& grid, const std::string& where);
GeoRaster read_raster(const std::filesystem::path& path, const RasterReadOptions& options = {});

/// Writes a raster window by window and publishes it with commit(). The suffix chooses the format: `.npy`,
/// else GeoTIFF (deflated, tiled, BigTIFF where needed) through GDAL. write() may be called from any thread.
class RasterWriter {
 public:
  /// `grid` gives size and georeference. Missing cells are NaN, and a GeoTIFF declares NaN as its nodata value:
  /// no result can take this value, regardless of the mark of missing cells in the inputs.
  static std::unique_ptr<RasterWriter> create(const std::filesystem::path& path, const RasterGrid& grid);
  virtual ~RasterWriter() = default;
  virtual void write(int64_t row, int64_t col, int64_t rows, int64_t cols, const float* values) = 0;
  virtual void commit() = 0;
};

/// `values`: f32 (rows, cols).
void write_raster(const std::filesystem::path& path, const RasterGrid& grid, const Array& values);

/// Metres of a unit of length by its name ("m", "US survey foot"); nothing for another text.
std::optional<double> metres_of_unit(std::string_view name);

/// Throws InputError unless cells are in metres, north up, not rotated and square to a thousandth. `where` names
/// the file.
void require_square_metres(const RasterGrid& grid, const std::string& where);
/// Throws InputError unless shape, transform and CRS of `other` are those of `grid`. A file that names no CRS
/// or no transform is taken to lie where the other does.
void require_same_grid(const RasterGrid& grid, const std::string& where, const RasterGrid& other,
                       const std::string& other_where);

enum class HeightKind : uint8_t {
  absolute,     ///< above a datum: ground, buildings, canopies given so
  above_ground  ///< of plants
};
/// Throws InputError, naming value and place, for what cannot be heights in metres: nodata values of which the file
/// says nothing, a relief above 9 km, plants above 130 m. Returns a warning for plants above 60 m, else "".
std::string check_heights(const Array& values, HeightKind kind, const std::string& where);

/// Empty if GDAL works, else the reason why it does not.
std::string gdal_unavailable_reason();

/// Longitude and latitude (degrees, WGS 84) of a point in the raster's CRS; needs GDAL.
struct LonLat {
  double lon = 0, lat = 0;
};
LonLat to_lon_lat(const RasterGrid& grid, double x, double y);
/// The same of the raster's centre.
LonLat centre_lon_lat(const RasterGrid& grid);
/// WKT of an EPSG code such as 3006; needs GDAL.
std::string crs_from_epsg(int code);

}  // namespace lockstep::io
