// Whole chunks of a NetCDF-4 file's variables, compressed by all threads and stored as they are: HDF5 itself runs its
// filters on one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::io {

/// Variables of f32 with dimensions (step, y, x), chunks of (1, chunk_rows, chunk_cols), filters shuffle and deflate.
struct ChunkedGrids {
  int64_t rows = 0, cols = 0, chunk_rows = 0, chunk_cols = 0;
  int level = 1;  ///< of deflate
};

class Hdf5ChunkWriter {
 public:
  /// Null where the HDF5 that netCDF uses has no direct writes of chunks (older than 1.10.3). The file must be closed
  /// elsewhere. Throws InputError where it cannot be opened.
  static std::unique_ptr<Hdf5ChunkWriter> open(const std::filesystem::path& path,
                                               const std::vector<std::string>& variables,
                                               const ChunkedGrids& grids);
  ~Hdf5ChunkWriter();
  /// Rows [row, row + rows) of a step of a variable; they begin and end between chunks or at the grid's end. One
  /// thread at a time.
  void write(size_t variable, size_t step, int64_t row, int64_t rows, const float* values);
  void close();

 private:
  struct State;
  explicit Hdf5ChunkWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::io
