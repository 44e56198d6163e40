// Grids over time out of a NetCDF file such as GridSeriesWriter makes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::io {

/// Variables of f32 with dimensions (time, y, x).
class GridSeriesReader {
 public:
  /// Throws InputError for what is no such file or has no variable of this shape.
  GridSeriesReader(const std::filesystem::path& path, int64_t steps, int64_t rows, int64_t cols);
  ~GridSeriesReader();
  GridSeriesReader(const GridSeriesReader&) = delete;
  GridSeriesReader& operator=(const GridSeriesReader&) = delete;

  const std::vector<std::string>& names() const;
  /// Rows [row, row + rows) of a step, whole rows into `out`. From any thread: chunks are decompressed by the one that calls.
  void read(size_t variable, size_t step, int64_t row, int64_t rows, float* out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::io
