// ERA5 hourly data on single levels (Hersbach et al. 2020, doi:10.1002/qj.3803) as the Climate Data Store gives them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>

#include "io/arrays/netcdf_arrays.hpp"
#include "io/series/weather/weather_checks.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;
constexpr double kKelvin = 273.15, kSecondsPerHour = 3600, kCell = 0.25;
constexpr const char* kEra5File =
    "ERA5 hourly data on single levels: u10, v10, t2m, d2m, ssrd [, fdir, strd, sp]";

/// Saturation over water (Pa) as ECMWF's model has it (IFS documentation, part IV, 7.5).
double era5_saturation(double kelvin) {
  return 611.21 * std::exp(17.502 * (kelvin - 273.16) / (kelvin - 32.19));
}

/// The two of an axis around a place, and the share of the second.
struct AxisPlace {
  size_t first = 0, second = 0;
  double share = 0;
};

/// `period`: of an axis around the Earth; 0: of none.
AxisPlace place_on(const std::vector<double>& axis, double at, bool nearest, double period, const char* name,
                   const std::string& where) {
  const size_t n = axis.size();
  const double cell = n > 1 ? std::abs(axis[1] - axis[0]) : kCell;
  const auto away = [&](double from, double to) {
    const double d = to - from;
    return period > 0 ? std::remainder(d, period) : d;
  };
  size_t near = 0;
  for (size_t k = 1; k < n; ++k)
    if (std::abs(away(axis[k], at)) < std::abs(away(axis[near], at))) near = k;
  const double rest = away(axis[near], at);
  if (!(std::abs(rest) <= cell))
    throw InputError(fmt::format("{} from {:g} to {:g}", name, axis.front(), axis.back()), where,
                     fmt::format("cells around the place, {:.3f}", at));
  AxisPlace found{near, near, 0};
  if (nearest || rest == 0) return found;
  for (const size_t other : {(near + n - 1) % n, (near + 1) % n}) {
    const double step = away(axis[near], axis[other]);
    if (other == near || step * rest <= 0 || std::abs(step) > 1.5 * cell) continue;
    found.second = other;
    found.share = rest / step;
  }
  return found;
}

class Era5File {
 public:
  Era5File(const fs::path& path, const WeatherPlace& place) : file_(path), where_(path.string()) {
    for (const char* name : {"valid_time", "time"})
      if (time_.empty() && file_.has(name)) time_ = name;
    if (time_.empty() || !file_.has("latitude") || !file_.has("longitude"))
      throw InputError("no axes valid_time or time, latitude and longitude", where_, kEra5File);
    lat_ = place_on(axis("latitude"), place.latitude_deg, place.nearest, 0, "latitudes", where_);
    lon_ = place_on(axis("longitude"), place.longitude_deg, place.nearest, 360, "longitudes", where_);
    const auto unit = parse_time_unit(file_.text(time_, "units"));
    if (!unit)
      throw InputError(fmt::format("times in '{}'", file_.text(time_, "units")), where_,
                       "such as 'seconds since 1970-01-01'");
    const CivilMinutes ahead = std::llround(60 * unit->epoch.utc_offset_h.value_or(0));
    for (const double value : axis(time_)) {
      constexpr double kMost = 1e10;  // minutes: far beyond all calendars, far within 64 bits
      if (!(std::abs(value * unit->minutes) < kMost))
        throw InputError(fmt::format("a time of {}", value), where_,
                         fmt::format("times in {}", file_.text(time_, "units")));
      times_.push_back(unit->minutes_of(value) - ahead);
    }
  }
  bool has(const std::string& name) const { return file_.has(name); }
  const std::vector<CivilMinutes>& times() const { return times_; }  ///< universal

  /// At the place, a value a time.
  std::vector<double> read(const std::string& name) const {
    const std::vector<double> a = column(name, lat_.first, lon_.first);
    if (lat_.share == 0 && lon_.share == 0) return a;
    const std::vector<double> b = column(name, lat_.first, lon_.second),
                              c = column(name, lat_.second, lon_.first),
                              d = column(name, lat_.second, lon_.second);
    std::vector<double> values(a.size());
    for (size_t k = 0; k < a.size(); ++k)
      values[k] = std::lerp(std::lerp(a[k], b[k], lon_.share), std::lerp(c[k], d[k], lon_.share), lat_.share);
    return values;
  }

 private:
  std::vector<double> axis(const std::string& name) const {
    const auto dimensions = file_.dimensions(name);
    if (dimensions.size() > 1) throw InputError(fmt::format("{} of two axes", name), where_, kEra5File);
    const Sizes count = dimensions.empty() ? Sizes{} : Sizes{dimensions[0].second};
    const Array values = file_.read(name, std::vector<size_t>(count.size(), 0), count);
    const auto span = values.as<double>();
    if (span.empty()) throw InputError(fmt::format("an empty axis {}", name), where_, kEra5File);
    return {span.begin(), span.end()};
  }

  /// A cell's values over time. Recent months come twice, as ERA5 and as preliminary ERA5T: the first that is there counts.
  std::vector<double> column(const std::string& name, size_t lat, size_t lon) const {
    const auto dimensions = file_.dimensions(name);
    std::vector<size_t> first;
    Sizes count;
    size_t time = 0, version = 0;
    int64_t versions = 1;
    for (size_t k = 0; k < dimensions.size(); ++k) {
      const auto& [axis, length] = dimensions[k];
      const bool is_time = axis == time_, is_version = axis == "expver";
      if (!is_time && !is_version && axis != "latitude" && axis != "longitude" && length != 1)
        throw InputError(fmt::format("{} with an additional axis {}", name, axis), where_, kEra5File);
      if (is_time) time = k;
      if (is_version) version = k, versions = length;
      first.push_back(axis == "latitude" ? lat : axis == "longitude" ? lon : 0);
      count.push_back(is_time || is_version ? length : 1);
    }
    const Array all = file_.read(name, first, count);
    const auto numbers = all.as<double>();
    const size_t steps = times_.size(), copies = static_cast<size_t>(versions);
    if (numbers.size() != steps * copies)
      throw InputError(fmt::format("{} with other times than the file", name), where_, kEra5File);
    std::vector<double> values(steps, std::numeric_limits<double>::quiet_NaN());
    for (size_t v = copies; v-- > 0;)
      for (size_t k = 0; k < steps; ++k) {
        const double value = numbers[version < time ? v * steps + k : k * copies + v];
        if (!std::isnan(value)) values[k] = value;
      }
    return values;
  }

  NetcdfInput file_;
  std::string where_, time_;
  AxisPlace lat_, lon_;
  std::vector<CivilMinutes> times_;
};

/// The store gives momentary values and sums as two files, whose names differ in this word.
fs::path other_half(const fs::path& path) {
  std::string name = path.filename().string();
  for (const auto& [from, to] : {std::pair("instant", "accum"), std::pair("accum", "instant")})
    if (const size_t at = name.find(from); at != name.npos) {
      name.replace(at, std::string_view(from).size(), to);
      std::error_code ignored;
      if (fs::exists(path.parent_path() / name, ignored)) return path.parent_path() / name;
    }
  return {};
}

/// ERA5-Land has the names of ERA5, and sums that run from the first hour of a day to the next midnight: they fall at 01:00 alone.
void refuse_sums_of_days(const std::vector<CivilMinutes>& times, const std::vector<double>& global,
                         const std::string& where) {
  constexpr double kRounding = kSecondsPerHour;  // of packed numbers, J/m²: 1 W/m²
  constexpr size_t kWholeDay = 24;
  size_t falls = 0, at_one = 0;
  for (size_t k = 1; k < times.size(); ++k) {
    if (!(global[k] < global[k - 1] - kRounding)) continue;
    ++falls;
    at_one += times[k] % kMinutesPerDay == 60;
  }
  if (times.size() >= kWholeDay && at_one > 0 && at_one == falls)
    throw InputError("ssrd decreases at 01:00 UTC only: it is accumulated over the day, as in ERA5-Land",
                     where, "hourly sums, as in ERA5 on single levels");
}

}  // namespace

WeatherTable read_era5(const fs::path& path, const WeatherPlace& place) {
  const std::string where = path.string();
  std::vector<std::unique_ptr<Era5File>> files;
  files.push_back(std::make_unique<Era5File>(path, place));
  if (const fs::path other = other_half(path); !other.empty())
    files.push_back(std::make_unique<Era5File>(other, place));
  const std::vector<CivilMinutes> times = files[0]->times();
  std::vector<std::string> missing;
  const auto read = [&](const char* name, bool needed) -> std::vector<double> {
    for (const auto& file : files) {
      if (!file->has(name)) continue;
      if (file->times() != times)
        throw InputError("two files with different times", where, "the same period in both");
      return file->read(name);
    }
    if (needed) missing.push_back(name);
    return std::vector<double>(times.size(), std::numeric_limits<double>::quiet_NaN());
  };
  const auto u = read("u10", true), v = read("v10", true), t = read("t2m", true), d = read("d2m", true),
             global = read("ssrd", true), direct = read("fdir", false), longwave = read("strd", false),
             pressure = read("sp", false);
  if (!missing.empty())
    throw InputError(fmt::format("no variable {}", fmt::join(missing, ", ")), where, kEra5File);
  refuse_sums_of_days(times, global, where);
  WeatherTable table;
  table.where = where;
  table.horizontal_direct = true;
  table.utc_offset_h = place.utc_offset_h;
  for (size_t k = 0; k < times.size(); ++k) {
    WeatherRow row;
    row.line = static_cast<int64_t>(k) + 1;
    row.time = times[k] + std::llround(place.utc_offset_h * 60);
    const auto take = [&](Weather quantity, double value) {
      if (!std::isnan(value)) take_value(row, quantity, value);
    };
    take(Weather::air_temperature, t[k] - kKelvin);
    // In this order the minimum of NaN is NaN: a missing dew point is no saturated air.
    take(Weather::relative_humidity, std::min(100 * era5_saturation(d[k]) / era5_saturation(t[k]), 100.0));
    take(Weather::wind_speed, std::hypot(u[k], v[k]));
    const double from = std::atan2(-u[k], -v[k]) * 180 / std::numbers::pi;
    take(Weather::wind_direction, from < 0 ? from + 360 : from);
    take(Weather::global, global[k] / kSecondsPerHour);
    take(Weather::direct, direct[k] / kSecondsPerHour);
    take(Weather::longwave_down, longwave[k] / kSecondsPerHour);
    take(Weather::pressure, pressure[k] / 100);
    append_row(table, row);
  }
  finish_rows(table);
  if (table.rows.size() > 1 && table.step_min != 60)
    throw InputError(fmt::format("times {} minutes apart", table.step_min), where, "hourly data");
  return table;
}

}  // namespace lockstep::io
