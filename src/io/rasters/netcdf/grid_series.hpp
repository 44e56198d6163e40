// Grids over time in one NetCDF-4 file by the CF-1.8 conventions: dimensions time, y, x; compressed, chunked.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/rasters/raster.hpp"
#include "io/series/civil_time.hpp"

namespace lockstep::io {

struct SeriesVariable {
  std::string name, long_name, unit;
  std::string standard_name;  ///< empty where CF has none
};

struct SeriesDescription {
  RasterGrid grid;
  std::vector<CivilMinutes> times;  ///< interval ends, local
  int64_t step_min = 60;
  double utc_offset_h = 0;
  std::vector<SeriesVariable> variables;
  std::string title, source, history;
};

/// Writes grids in any order and publishes the file with commit(). One thread at a time; chunks are compressed by all
/// where netCDF's HDF5 takes them whole.
class GridSeriesWriter {
 public:
  /// Throws InputError where the file cannot be made, UnsupportedError where netCDF is absent.
  GridSeriesWriter(const std::filesystem::path& path, const SeriesDescription& description);
  ~GridSeriesWriter();
  GridSeriesWriter(const GridSeriesWriter&) = delete;
  GridSeriesWriter& operator=(const GridSeriesWriter&) = delete;

  /// Rows are written by multiples of this.
  static constexpr int64_t kRows = 256;
  /// Rows [row, row + rows) of variable `variable` at time number `step`; NaN = missing. `row` is a multiple of kRows,
  /// and so is `rows`, or the grid ends there.
  void write(size_t variable, size_t step, int64_t row, int64_t rows, const float* values);
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::io
