#include "io/rasters/netcdf/grid_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/files/atomic_file.hpp"
#include "core/record/stamp.hpp"
#include "io/rasters/netcdf/grid_mapping.hpp"
#include "io/rasters/netcdf/hdf5_chunks.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace fs = std::filesystem;
namespace {

// Values of netCDF's macros.
constexpr int kNcInt = 4, kNcFloat = 5, kNcDouble = 6, kNcGlobal = -1, kNcChunked = 0;
constexpr int kNcNetcdf4 = 0x1000, kNcWrite = 1;
constexpr int64_t kChunk = GridSeriesWriter::kRows;
constexpr int kDeflateLevel = 1;

/// "+02:00"
std::string zone_text(double utc_offset_h) {
  const int minutes = static_cast<int>(std::lround(utc_offset_h * 60));
  return fmt::format("{}{:02}:{:02}", minutes < 0 ? '-' : '+', std::abs(minutes) / 60,
                     std::abs(minutes) % 60);
}

}  // namespace

struct GridSeriesWriter::State {
  const NetcdfApi& api;
  AtomicPath path;
  const SeriesDescription description;
  int file = -1;
  bool open = false;
  std::vector<int> variables;
  std::unique_ptr<Hdf5ChunkWriter> chunks;  // has the file instead of netCDF

  State(const fs::path& target, const SeriesDescription& d)
      : api(require_netcdf(target.string())), path(target), description(d) {
    check(api.nc_create(path.temporary().c_str(), kNcNetcdf4, &file));
    open = true;
    define();
    if (api.hdf5) hand_to_hdf5();
  }
  ~State() {
    if (open) api.nc_close(file);
  }
  void check(int error) const {
    if (error != 0)
      throw InputError(fmt::format("netCDF cannot write it: {}", api.nc_strerror(error)),
                       path.target().string(), "a folder that can be written and has room");
  }
  void text(int variable, const char* name, const std::string& value) const {
    if (!value.empty()) check(api.nc_put_att_text(file, variable, name, value.size(), value.c_str()));
  }
  void numbers(int variable, const char* name, const std::vector<double>& values) const {
    check(api.nc_put_att_double(file, variable, name, kNcDouble, values.size(), values.data()));
  }
  int dimension(const char* name, size_t length) const {
    int id = 0;
    check(api.nc_def_dim(file, name, length, &id));
    return id;
  }
  int variable(const std::string& name, int type, const std::vector<int>& dimensions) const {
    int id = 0;
    check(api.nc_def_var(file, name.c_str(), type, static_cast<int>(dimensions.size()), dimensions.data(),
                         &id));
    return id;
  }
  void close() {
    if (!open) return;
    open = false;
    check(api.nc_close(file));
  }
  void hand_to_hdf5();
  void define();
  void define_grids(int time, int y, int x, bool mapped);
  int define_mapping() const;
};

void GridSeriesWriter::State::hand_to_hdf5() {
  close();
  std::vector<std::string> names;
  for (const SeriesVariable& v : description.variables) names.push_back(v.name);
  const RasterGrid& grid = description.grid;
  chunks = Hdf5ChunkWriter::open(
      path.temporary(), names,
      {grid.rows, grid.cols, std::min(grid.rows, kChunk), std::min(grid.cols, kChunk), kDeflateLevel});
}

int GridSeriesWriter::State::define_mapping() const {
  const RasterGrid& grid = description.grid;
  if (grid.crs_wkt.empty()) return -1;
  const int crs = variable("crs", kNcInt, {});
  const GridMapping mapping = grid_mapping_of(grid.crs_wkt);
  text(crs, "grid_mapping_name", mapping.name);
  for (const auto& [name, values] : mapping.parameters) numbers(crs, name.c_str(), values);
  text(crs, "crs_wkt", grid.crs_wkt);
  text(crs, "spatial_ref", grid.crs_wkt);
  std::string transform;
  for (const double t : grid.transform) transform += fmt::format("{}{}", transform.empty() ? "" : " ", t);
  text(crs, "GeoTransform", transform);
  return crs;
}

void GridSeriesWriter::State::define_grids(int time, int y, int x, bool mapped) {
  const RasterGrid& grid = description.grid;
  const size_t chunks[] = {1, static_cast<size_t>(std::min(grid.rows, kChunk)),
                           static_cast<size_t>(std::min(grid.cols, kChunk))};
  const float missing = std::numeric_limits<float>::quiet_NaN();
  for (const SeriesVariable& v : description.variables) {
    const int id = variable(v.name, kNcFloat, {time, y, x});
    check(api.nc_def_var_chunking(file, id, kNcChunked, chunks));
    check(api.nc_def_var_deflate(file, id, 1, 1, kDeflateLevel));
    check(api.nc_def_var_fill(file, id, 0, &missing));
    text(id, "long_name", v.long_name);
    text(id, "units", v.unit);
    text(id, "standard_name", v.standard_name);
    text(id, "cell_methods", "time: mean");
    if (mapped) text(id, "grid_mapping", "crs");
    variables.push_back(id);
  }
}

void GridSeriesWriter::State::define() {
  const RasterGrid& grid = description.grid;
  const int time = dimension("time", description.times.size()),
            y = dimension("y", static_cast<size_t>(grid.rows)),
            x = dimension("x", static_cast<size_t>(grid.cols)), ends = dimension("bnds", 2);
  const int time_variable = variable("time", kNcDouble, {time}),
            bounds = variable("time_bnds", kNcDouble, {time, ends}),
            y_variable = variable("y", kNcDouble, {y}), x_variable = variable("x", kNcDouble, {x});
  text(time_variable, "standard_name", "time");
  const std::string zone = zone_text(description.utc_offset_h);
  text(time_variable, "long_name", "end of the interval, local standard time (UTC" + zone + ")");
  // Without the offset CF readers take the times as UTC.
  text(time_variable, "units", "minutes since 1970-01-01 00:00:00 " + zone);
  text(time_variable, "time_zone", "UTC" + zone);
  text(time_variable, "calendar", "proleptic_gregorian");
  text(time_variable, "axis", "T");
  text(time_variable, "bounds", "time_bnds");
  const auto axis = [&](int id, const char* name) {
    text(id, "axis", name);
    text(id, "units", "m");
    text(id, "standard_name", fmt::format("projection_{}_coordinate", *name == 'X' ? 'x' : 'y'));
    text(id, "long_name", fmt::format("{} of the pixel's centre", *name == 'X' ? "easting" : "northing"));
  };
  axis(y_variable, "Y");
  axis(x_variable, "X");
  const int crs = define_mapping();
  define_grids(time, y, x, crs >= 0);
  text(kNcGlobal, "Conventions", "CF-1.8");
  text(kNcGlobal, "title", description.title);
  text(kNcGlobal, "source", description.source);
  text(kNcGlobal, "history", description.history);
  check(api.nc_enddef(file));

  std::vector<double> times, edges, ys, xs;
  for (const CivilMinutes t : description.times) {
    times.push_back(static_cast<double>(t));
    edges.insert(edges.end(), {static_cast<double>(t - description.step_min), static_cast<double>(t)});
  }
  for (int64_t r = 0; r < grid.rows; ++r)
    ys.push_back(grid.transform[3] + (static_cast<double>(r) + 0.5) * grid.transform[5]);
  for (int64_t c = 0; c < grid.cols; ++c)
    xs.push_back(grid.transform[0] + (static_cast<double>(c) + 0.5) * grid.transform[1]);
  check(api.nc_put_var_double(file, time_variable, times.data()));
  check(api.nc_put_var_double(file, bounds, edges.data()));
  check(api.nc_put_var_double(file, y_variable, ys.data()));
  check(api.nc_put_var_double(file, x_variable, xs.data()));
  const int one = 1;
  if (crs >= 0) check(api.nc_put_var_int(file, crs, &one));
}

GridSeriesWriter::GridSeriesWriter(const fs::path& path, const SeriesDescription& description)
    : state_(std::make_unique<State>(path, description)) {}
GridSeriesWriter::~GridSeriesWriter() = default;

void GridSeriesWriter::write(size_t variable, size_t step, int64_t row, int64_t rows, const float* values) {
  State& s = *state_;
  const RasterGrid& grid = s.description.grid;
  grid.check_window(row, 0, rows, grid.cols);
  if (s.chunks) return s.chunks->write(variable, step, row, rows, values);
  const size_t first[] = {step, static_cast<size_t>(row), 0},
               count[] = {1, static_cast<size_t>(rows), static_cast<size_t>(grid.cols)};
  s.check(s.api.nc_put_vara_float(s.file, s.variables[variable], first, count, values));
}

void GridSeriesWriter::commit() {
  State& s = *state_;
  if (s.chunks) {
    s.chunks->close();
    s.chunks.reset();
    s.check(s.api.nc_open(s.path.temporary().c_str(), kNcWrite, &s.file));
    s.open = true;
  }
  const record::Stamp stamp = record::stamp();
  s.text(kNcGlobal, "program", stamp.program);
  s.text(kNcGlobal, record::kRunName, stamp.run);
  s.close();
  s.path.commit();
}

}  // namespace lockstep::io
