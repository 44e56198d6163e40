// ERA5's NetCDF files as the old and the new Climate Data Store give them, made here.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/arrays/netcdf_arrays.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"

namespace lockstep::io {

inline constexpr int kShort = 3, kInt = 4, kDouble = 6, kNetcdf4 = 0x1000, kClassic64 = 0x0200,
                     kFill = -32767;
inline constexpr size_t kTimes = 3;
inline const std::vector<double> kLatitudes = {48.5, 48.25, 48.0};

/// Plain linear fields of the cell and the hour.
inline double era5_value(const std::string& name, size_t time, double lat, double lon) {
  const double at = static_cast<double>(time) + (lat - 48) + 2 * (lon + 12);
  const std::map<std::string, double> values = {
      {"u10", -1 - 0.5 * at},      {"v10", 2 + 0.25 * at},           {"t2m", 290 + at},
      {"d2m", 283 + 0.5 * at},     {"ssrd", 3600 * (400 + 10 * at)}, {"fdir", 3600 * (250 + 5 * at)},
      {"strd", 3600 * (330 + at)}, {"sp", 98000 + 100 * at}};
  return values.at(name);
}
inline const std::vector<std::string> kInstant = {"u10", "v10", "t2m", "d2m", "sp"},
                                      kAccumulated = {"ssrd", "fdir", "strd"};

/// A NetCDF file written through the library alone.
struct Era5Writer {
  const NetcdfApi& api;
  int file = -1;
  std::vector<std::function<void()>> later = {};  // values, which follow all definitions
  Era5Writer(const std::filesystem::path& path, int format) : api(require_netcdf(path.string())) {
    EXPECT_EQ(api.nc_create(path.c_str(), format, &file), 0);
  }
  ~Era5Writer() {
    EXPECT_EQ(api.nc_enddef(file), 0);
    for (const auto& put : later) put();
    api.nc_close(file);
  }
  int dimension(const char* name, size_t length) {
    int id = 0;
    EXPECT_EQ(api.nc_def_dim(file, name, length, &id), 0);
    return id;
  }
  int axis(const char* name, int dim, int type, const std::vector<double>& values, const std::string& unit) {
    int id = 0;
    EXPECT_EQ(api.nc_def_var(file, name, type, 1, &dim, &id), 0);
    EXPECT_EQ(api.nc_put_att_text(file, id, "units", unit.size(), unit.c_str()), 0);
    later.emplace_back([this, id, values] { EXPECT_EQ(api.nc_put_var_double(file, id, values.data()), 0); });
    return id;
  }
};

/// Packed in 16 bits; hours since 1900; longitudes from 0 to 360; ERA5 and ERA5T apart, of which the last hour is ERA5T's.
inline void write_old(const std::filesystem::path& path, int format = kNetcdf4) {
  Era5Writer w(path, format);
  const std::vector<double> longitudes = {347.75, 348.0, 348.25};
  const int time = w.dimension("time", kTimes), version = w.dimension("expver", 2),
            lat = w.dimension("latitude", kLatitudes.size()),
            lon = w.dimension("longitude", longitudes.size());
  w.axis("time", time, kInt, {1063992, 1063993, 1063994}, "hours since 1900-01-01 00:00:00.0");
  w.axis("expver", version, kInt, {1, 5}, "");
  w.axis("latitude", lat, kDouble, kLatitudes, "degrees_north");
  w.axis("longitude", lon, kDouble, longitudes, "degrees_east");
  for (const auto& names : {kInstant, kAccumulated})
    for (const std::string& name : names) {
      const int axes[] = {time, version, lat, lon};
      int id = 0;
      ASSERT_EQ(w.api.nc_def_var(w.file, name.c_str(), kShort, 4, axes, &id), 0);
      const double middle = era5_value(name, 1, 48.25, -12), fill = kFill;
      double furthest = 0;
      for (size_t k = 0; k < kTimes; ++k)
        for (const double y : kLatitudes)
          for (const double x : longitudes)
            furthest = std::max(furthest, std::abs(era5_value(name, k, y, x - 360) - middle));
      const double scale = furthest / 32000;
      w.api.nc_put_att_double(w.file, id, "scale_factor", kDouble, 1, &scale);
      w.api.nc_put_att_double(w.file, id, "add_offset", kDouble, 1, &middle);
      w.api.nc_put_att_double(w.file, id, "missing_value", kShort, 1, &fill);
      std::vector<int> packed;
      for (size_t k = 0; k < kTimes; ++k)
        for (size_t v = 0; v < 2; ++v)
          for (const double y : kLatitudes)
            for (const double x : longitudes)
              packed.push_back(
                  (k == kTimes - 1) != (v == 1)
                      ? kFill
                      : static_cast<int>(std::lround((era5_value(name, k, y, x - 360) - middle) / scale)));
      w.later.emplace_back(
          [&w, id, packed] { EXPECT_EQ(w.api.nc_put_var_int(w.file, id, packed.data()), 0); });
    }
}

/// Floats; seconds since 1970; longitudes from -180 to 180.
inline void write_new(const std::filesystem::path& path, const std::vector<std::string>& names) {
  const std::vector<double> longitudes = {-12.25, -12.0, -11.75};
  std::vector<NetcdfVariable> variables = {
      {"valid_time",
       {"valid_time"},
       Array::of(std::vector<double>{1621382400, 1621386000, 1621389600}, {kTimes}),
       {{"units", "seconds since 1970-01-01"}}},
      {"latitude", {"latitude"}, Array::of(kLatitudes, {3}), {}},
      {"longitude", {"longitude"}, Array::of(longitudes, {3}), {}}};
  for (const std::string& name : names) {
    std::vector<float> values;
    for (size_t k = 0; k < kTimes; ++k)
      for (const double y : kLatitudes)
        for (const double x : longitudes) values.push_back(static_cast<float>(era5_value(name, k, y, x)));
    variables.push_back(
        {name, {"valid_time", "latitude", "longitude"}, Array::of(values, {kTimes, 3, 3}), {}});
  }
  write_netcdf(path, variables, {});
}

inline constexpr size_t kHoleHour = 12;
/// A day and an hour of one cell from 2021-05-19T00:00 on, whose radiation is `joules` of the hour. `hole`: what has no value
/// at kHoleHour.
inline void write_day(const std::filesystem::path& path, const std::function<double(int hour)>& joules,
                      double lat = 48, double lon = 11, const std::string& epoch = "seconds since 1970-01-01",
                      const std::string& hole = "") {
  constexpr int64_t kHours = 25;
  std::vector<double> times, sums;
  for (int hour = 0; hour < int(kHours); ++hour) {
    times.push_back(1621382400 + 3600.0 * hour);
    sums.push_back(joules(hour));
  }
  if (hole == "valid_time") times[kHoleHour] = std::nan("");
  std::vector<NetcdfVariable> variables = {
      {"valid_time", {"valid_time"}, Array::of(times, {kHours}), {{"units", epoch}}},
      {"latitude", {"latitude"}, Array::of(std::vector<double>{lat}, {1}), {}},
      {"longitude", {"longitude"}, Array::of(std::vector<double>{lon}, {1}), {}},
      {"ssrd", {"valid_time", "latitude", "longitude"}, Array::of(sums, {kHours, 1, 1}), {}}};
  for (const char* name : {"u10", "v10", "t2m", "d2m"}) {
    std::vector<double> values(kHours, name[1] == '2' ? 285 : 1);
    if (name == hole) values[kHoleHour] = std::nan("");
    variables.push_back(
        {name, {"valid_time", "latitude", "longitude"}, Array::of(values, {kHours, 1, 1}), {}});
  }
  write_netcdf(path, variables, {});
}

}  // namespace lockstep::io
