#include "io/rasters/netcdf/hdf5_chunks.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "core/platform/parallel.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr unsigned kReadWrite = 1;
/// Chunks that are held compressed at a time.
constexpr int64_t kBatch = 64;

/// Byte k of all values, then byte k + 1: HDF5's shuffle of four-byte elements.
void shuffle(const std::vector<float>& values, std::vector<unsigned char>& bytes) {
  const size_t count = values.size();
  bytes.resize(count * sizeof(float));
  const auto* from = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t b = 0; b < sizeof(float); ++b)
    for (size_t k = 0; k < count; ++k) bytes[b * count + k] = from[k * sizeof(float) + b];
}

/// Zlib's stream of these bytes. Shuffled numbers repeat as runs of one byte or hardly at all: a search for runs alone
/// takes three fifths of the time of any other, and the stream is a sixtieth longer.
void deflate_runs(std::vector<unsigned char>& bytes, int level, std::vector<unsigned char>& packed) {
  z_stream stream{};
  constexpr int kMemoryLevel = 8;  // zlib's own
  bool ok = deflateInit2(&stream, level, Z_DEFLATED, MAX_WBITS, kMemoryLevel, Z_RLE) == Z_OK;
  if (ok) {
    packed.resize(deflateBound(&stream, bytes.size()));
    stream.next_in = bytes.data();
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = packed.data();
    stream.avail_out = static_cast<uInt>(packed.size());
    ok = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    packed.resize(stream.total_out);
    deflateEnd(&stream);
  }
  if (!ok) throw InternalError("zlib cannot compress a chunk", "netCDF", "room for it");
}

/// The chunk of a part of a grid at this place in it, filled up with NaN beyond its edges, through both filters.
void compress_chunk(const ChunkedGrids& g, const float* values, int64_t part_rows, int64_t row, int64_t col,
                    std::vector<unsigned char>& packed) {
  const int64_t rows = std::min(g.chunk_rows, part_rows - row), cols = std::min(g.chunk_cols, g.cols - col);
  std::vector<float> chunk(static_cast<size_t>(g.chunk_rows * g.chunk_cols),
                           std::numeric_limits<float>::quiet_NaN());
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(values + (row + r) * g.cols + col, cols, &chunk[static_cast<size_t>(r * g.chunk_cols)]);
  std::vector<unsigned char> bytes;
  shuffle(chunk, bytes);
  deflate_runs(bytes, g.level, packed);
}

}  // namespace

struct Hdf5ChunkWriter::State {
  const Hdf5Api& api;
  std::string where;
  ChunkedGrids grids;
  platform::ThreadArena threads;
  Hdf5Api::Id file = -1;
  std::vector<Hdf5Api::Id> variables;
  std::vector<std::vector<unsigned char>> packed;  // a chunk of the batch

  State(const Hdf5Api& a, std::string w, const ChunkedGrids& g) : api(a), where(std::move(w)), grids(g) {}
  ~State() { close(); }
  void require(bool ok) const {
    if (!ok)
      throw InputError("HDF5 cannot write the file", where, "a folder that can be written and has room");
  }
  bool close() {
    bool ok = true;
    for (const Hdf5Api::Id variable : std::exchange(variables, {})) ok &= api.H5Dclose(variable) >= 0;
    if (file >= 0) ok &= api.H5Fclose(std::exchange(file, -1)) >= 0;
    return ok;
  }
};

Hdf5ChunkWriter::Hdf5ChunkWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Hdf5ChunkWriter::~Hdf5ChunkWriter() = default;

std::unique_ptr<Hdf5ChunkWriter> Hdf5ChunkWriter::open(const std::filesystem::path& path,
                                                       const std::vector<std::string>& variables,
                                                       const ChunkedGrids& grids) {
  const std::optional<Hdf5Api>& api = require_netcdf(path.string()).hdf5;
  if (!api) return nullptr;
  auto state = std::make_unique<State>(*api, path.string(), grids);
  state->file = api->H5Fopen(path.c_str(), kReadWrite, Hdf5Api::kDefault);
  state->require(state->file >= 0);
  for (const std::string& variable : variables) {
    state->variables.push_back(api->H5Dopen2(state->file, variable.c_str(), Hdf5Api::kDefault));
    state->require(state->variables.back() >= 0);
  }
  return std::unique_ptr<Hdf5ChunkWriter>(new Hdf5ChunkWriter(std::move(state)));
}

void Hdf5ChunkWriter::write(size_t variable, size_t step, int64_t row, int64_t rows, const float* values) {
  State& s = *state_;
  const ChunkedGrids& g = s.grids;
  if (row % g.chunk_rows != 0 || (rows % g.chunk_rows != 0 && row + rows != g.rows))
    throw InternalError(fmt::format("rows {} to {}", row, row + rows), s.where,
                        fmt::format("whole chunks of {} rows", g.chunk_rows));
  const int64_t across = (g.cols + g.chunk_cols - 1) / g.chunk_cols,
                count = across * ((rows + g.chunk_rows - 1) / g.chunk_rows);
  const auto row_of = [&](int64_t k) { return k / across * g.chunk_rows; };
  const auto col_of = [&](int64_t k) { return k % across * g.chunk_cols; };
  for (int64_t first = 0; first < count; first += kBatch) {
    const int64_t batch = std::min(kBatch, count - first);
    s.packed.resize(static_cast<size_t>(std::max<int64_t>(batch, static_cast<int64_t>(s.packed.size()))));
    s.threads.for_parts(batch, [&](int64_t from, int64_t to) {
      for (int64_t k = from; k < to; ++k)
        compress_chunk(g, values, rows, row_of(first + k), col_of(first + k),
                       s.packed[static_cast<size_t>(k)]);
    });
    for (int64_t k = 0; k < batch; ++k) {
      const std::vector<unsigned char>& packed = s.packed[static_cast<size_t>(k)];
      const unsigned long long at[] = {step, static_cast<unsigned long long>(row + row_of(first + k)),
                                       static_cast<unsigned long long>(col_of(first + k))};
      constexpr uint32_t all_filters = 0;
      s.require(s.api.H5Dwrite_chunk(s.variables[variable], Hdf5Api::kDefault, all_filters, at, packed.size(),
                                     packed.data()) >= 0);
    }
  }
}

void Hdf5ChunkWriter::close() { state_->require(state_->close()); }

}  // namespace lockstep::io
