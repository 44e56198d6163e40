#include "io/rasters/netcdf/grid_series_reader.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>

#include "core/files/folder.hpp"
#include "core/record/journal.hpp"
#include "io/rasters/gdal/gdal_api.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

// Values of netCDF's and HDF5's macros.
constexpr int kFloatType = 5, kChunkedStorage = 0, kBigEndian = 2;
constexpr unsigned kReadOnly = 0;
constexpr int kNameBytes = 257;

/// HDF5 runs one call at a time.
std::mutex& hdf5_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

/// Whether `packed` is a stream of exactly so many bytes. GDAL's inflater takes a third of zlib's time.
bool inflate_whole(const std::vector<unsigned char>& packed, std::vector<unsigned char>& bytes) {
  if (const GdalApi* const gdal = find_gdal()) {
    size_t length = 0;
    return gdal->CPLZLibInflate(packed.data(), packed.size(), bytes.data(), bytes.size(), &length) &&
           length == bytes.size();
  }
  uLongf length = bytes.size();
  return uncompress(bytes.data(), &length, packed.data(), packed.size()) == Z_OK && length == bytes.size();
}

}  // namespace

struct GridSeriesReader::State {
  struct StoredGrids {
    int id = 0;
    int64_t chunk_rows = 0, chunk_cols = 0;
    bool direct = false;  // its chunks are shuffled and deflated numbers of this machine
    Hdf5Api::Id dataset = -1;
  };
  const NetcdfApi& api;
  const std::string where;
  const int64_t steps, rows, cols;
  std::vector<std::string> names;
  std::vector<StoredGrids> grids;
  int file = -1;                 // of netCDF
  Hdf5Api::Id direct_file = -1;  // instead

  State(const std::filesystem::path& path, int64_t s, int64_t r, int64_t c)
      : api(require_netcdf(path.string())), where(path.string()), steps(s), rows(r), cols(c) {}
  void open(const std::filesystem::path& path) {
    const std::string name = InputFolder::name_of(path).string();
    check_netcdf(path);
    journal::input(path);
    const std::lock_guard lock(hdf5_mutex());
    check(api.nc_open(name.c_str(), 0, &file));
    int count = 0;
    check(api.nc_inq_nvars(file, &count));
    for (int id = 0; id < count; ++id) add(id);
    if (names.empty())
      throw InputError("no grids over time", where,
                       fmt::format("variables of f32 of {} x {} x {}", steps, rows, cols));
    if (std::ranges::all_of(grids, [](const StoredGrids& g) { return g.direct; })) open_chunks(name);
  }
  ~State() {
    const std::lock_guard lock(hdf5_mutex());
    for (const StoredGrids& g : grids)
      if (g.dataset >= 0) api.hdf5->H5Dclose(g.dataset);
    if (direct_file >= 0) api.hdf5->H5Fclose(direct_file);
    if (file >= 0) api.nc_close(file);
  }
  void check(int error) const {
    if (error != 0)
      throw InputError(fmt::format("netCDF cannot read it: {}", api.nc_strerror(error)), where,
                       "a NetCDF file of a run");
  }
  void add(int id) {
    int type = 0, rank = 0;
    check(api.nc_inq_vartype(file, id, &type));
    check(api.nc_inq_varndims(file, id, &rank));
    if (type != kFloatType || rank != 3) return;
    std::array<int, 3> dimensions{};
    std::array<size_t, 3> lengths{};
    check(api.nc_inq_vardimid(file, id, dimensions.data()));
    for (size_t k = 0; k < 3; ++k) check(api.nc_inq_dimlen(file, dimensions[k], &lengths[k]));
    if (lengths != std::array{size_t(steps), size_t(rows), size_t(cols)}) return;
    std::array<char, kNameBytes> name{};
    check(api.nc_inq_varname(file, id, name.data()));
    StoredGrids g;
    g.id = id;
    int storage = 0, shuffle = 0, deflate = 0, level = 0, order = 0;
    std::array<size_t, 3> chunk{};
    // Of files that are no NetCDF-4 netCDF knows none of this.
    if (api.nc_inq_var_chunking(file, id, &storage, chunk.data()) == 0 && storage == kChunkedStorage &&
        api.nc_inq_var_deflate(file, id, &shuffle, &deflate, &level) == 0 &&
        api.nc_inq_var_endian(file, id, &order) == 0) {
      g.chunk_rows = static_cast<int64_t>(chunk[1]);
      g.chunk_cols = static_cast<int64_t>(chunk[2]);
      g.direct = chunk[0] == 1 && shuffle && deflate && order != kBigEndian &&
                 std::endian::native == std::endian::little && g.chunk_rows > 0 && g.chunk_cols > 0 &&
                 g.chunk_rows <= rows && g.chunk_cols <= cols;
    }
    names.emplace_back(name.data());
    grids.push_back(g);
  }
  /// Leaves the file with netCDF where HDF5 does not open it.
  void open_chunks(const std::string& name) {
    if (!api.hdf5 || !api.hdf5->H5Dread_chunk) return;
    api.nc_close(std::exchange(file, -1));
    direct_file = api.hdf5->H5Fopen(name.c_str(), kReadOnly, 0);
    for (size_t k = 0; direct_file >= 0 && k < grids.size(); ++k) {
      grids[k].dataset = api.hdf5->H5Dopen2(direct_file, names[k].c_str(), 0);
      if (grids[k].dataset < 0) break;
    }
    if (direct_file < 0 || grids.back().dataset < 0)
      throw InputError("HDF5 cannot read the file", where, "a NetCDF file of a run");
  }
  void read_chunk(const StoredGrids& g, size_t step, int64_t row, int64_t col,
                  std::vector<unsigned char>& packed, std::vector<unsigned char>& bytes) const;
  void read_plain(const StoredGrids& g, size_t step, int64_t row, int64_t count, float* out) const;
};

/// A chunk as it was before both filters; the bytes of each value lie apart.
void GridSeriesReader::State::read_chunk(const StoredGrids& g, size_t step, int64_t row, int64_t col,
                                         std::vector<unsigned char>& packed,
                                         std::vector<unsigned char>& bytes) const {
  const unsigned long long first[] = {step, static_cast<unsigned long long>(row),
                                      static_cast<unsigned long long>(col)};
  unsigned long long size = 0;
  uint32_t left_out = 0;
  {
    const std::lock_guard lock(hdf5_mutex());
    if (api.hdf5->H5Dget_chunk_storage_size(g.dataset, first, &size) < 0 || size == 0 ||
        size > compressBound(bytes.size()) + 64)
      throw InputError(fmt::format("no values at step {}, row {}", step, row), where, "a complete run");
    packed.resize(size);
    if (api.hdf5->H5Dread_chunk(g.dataset, 0, first, &left_out, packed.data()) < 0)
      throw InputError("HDF5 cannot read the file", where, "a complete run");
  }
  if (left_out != 0 || !inflate_whole(packed, bytes))
    throw InputError(fmt::format("damaged values at step {}, row {}", step, row), where, "a complete run");
}

void GridSeriesReader::State::read_plain(const StoredGrids& g, size_t step, int64_t row, int64_t count,
                                         float* out) const {
  std::vector<double> values(static_cast<size_t>(count * cols));
  const size_t first[] = {step, static_cast<size_t>(row), 0},
               sizes[] = {1, static_cast<size_t>(count), static_cast<size_t>(cols)};
  const std::lock_guard lock(hdf5_mutex());
  check(api.nc_get_vara_double(file, g.id, first, sizes, values.data()));
  std::transform(values.begin(), values.end(), out, [](double v) { return static_cast<float>(v); });
}

GridSeriesReader::GridSeriesReader(const std::filesystem::path& path, int64_t steps, int64_t rows,
                                   int64_t cols)
    : state_(std::make_unique<State>(path, steps, rows, cols)) {
  state_->open(path);
}
GridSeriesReader::~GridSeriesReader() = default;

const std::vector<std::string>& GridSeriesReader::names() const { return state_->names; }

void GridSeriesReader::read(size_t variable, size_t step, int64_t row, int64_t rows, float* out) const {
  const State& s = *state_;
  const State::StoredGrids& g = s.grids.at(variable);
  if (g.dataset < 0) return s.read_plain(g, step, row, rows, out);
  const size_t cells = static_cast<size_t>(g.chunk_rows * g.chunk_cols);
  std::vector<unsigned char> packed, bytes(cells * sizeof(float));
  for (int64_t top = row / g.chunk_rows * g.chunk_rows; top < row + rows; top += g.chunk_rows) {
    const int64_t begin = std::max(top, row), end = std::min(top + g.chunk_rows, row + rows);
    for (int64_t left = 0; left < s.cols; left += g.chunk_cols) {
      s.read_chunk(g, step, top, left, packed, bytes);
      const int64_t width = std::min(g.chunk_cols, s.cols - left);
      for (int64_t r = begin; r < end; ++r) {
        const unsigned char* const from = bytes.data() + (r - top) * g.chunk_cols;
        float* const to = out + (r - row) * s.cols + left;
        for (int64_t c = 0; c < width; ++c) {
          const auto byte = [&](size_t b) { return static_cast<uint32_t>(from[b * cells + size_t(c)]); };
          to[c] = std::bit_cast<float>(byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24);
        }
      }
    }
  }
}

}  // namespace lockstep::io
