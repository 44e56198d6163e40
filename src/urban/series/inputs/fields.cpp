#include "urban/series/inputs/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "io/arrays/netcdf_arrays.hpp"
#include "io/rasters/raster.hpp"
#include "io/rasters/raster_bands.hpp"
#include "io/series/civil_time.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"
#include "urban/comfort/comfort.hpp"
#include "urban/options/errors.hpp"

namespace lockstep::urban {
namespace {

constexpr float kMostFactor = 10, kMostOffset = 20;  // beyond them a value is of another kind
constexpr float kColdestAir = -90, kWarmestAir = 60;

struct FieldLimits {
  float low, high, instead;  // `instead` replaces gaps where people cannot be
  const char* expected;
};

/// A band of the raster's grid, without gaps where people can be.
FieldPlane read_plane(const std::filesystem::path& file, int band, const LoadedCity& city,
                      std::span<const uint8_t> ground, const FieldLimits& limits, float scale) {
  const auto reader = io::RasterReader::open(file, {.pixel_size = {}, .band = band});
  if (!reader->grid().has_transform && io::is_netcdf(file))
    throw file_error(
        "no georeference", file.string(),
        "axes with the standard_name projection_x_coordinate and projection_y_coordinate, as CF has them");
  io::require_same_grid(city.grid, city.dsm_file, reader->grid(), file.string());
  FieldPlane plane(static_cast<size_t>(city.grid.rows * city.grid.cols));
  reader->read(0, 0, city.grid.rows, city.grid.cols, plane.data());
  for (size_t p = 0; p < plane.size(); ++p) {
    float& value = plane[p];
    if (!std::isnan(value)) value *= scale;
    if (value >= limits.low && value <= limits.high) continue;
    const bool gap = std::isnan(value);
    if (gap && !ground[p]) {
      value = limits.instead;
      continue;
    }
    const int64_t at = static_cast<int64_t>(p);
    throw file_error(gap ? std::string("no value") : fmt::format("{:g}", value),
                     fmt::format("{}, band {}, row {}, column {}", file.string(), band, at / city.grid.cols,
                                 at % city.grid.cols),
                     gap ? "a value on all ground that people can use" : limits.expected);
  }
  return plane;
}

/// The only number of a text such as "wd_270".
std::optional<double> number_in(const std::string& text) {
  const size_t first = text.find_first_of("0123456789");
  if (first == text.npos) return {};
  const size_t last = std::min(text.find_first_not_of("0123456789.", first), text.size());
  double value = 0;
  if (text.find_first_of("0123456789", last) != text.npos || (first > 0 && text[first - 1] == '-') ||
      !io::parse_double(std::string_view(text).substr(first, last - first), value))
    return {};
  return value;
}

std::vector<double> directions_of(const WindFieldOptions& o, const std::vector<io::BandLabel>& labels) {
  const std::string where = o.file.string();
  if (!o.directions_deg.empty()) {
    if (labels.size() == 1 || o.directions_deg.size() != labels.size())
      throw file_error(fmt::format("{} bands", labels.size()), where,
                       fmt::format("{}, as {{wind_field_directions}} says", o.directions_deg.size()));
    return o.directions_deg;
  }
  if (labels.size() == 1 && labels[0].dimension.empty()) return {};
  std::vector<double> found;
  for (size_t band = 0; band < labels.size(); ++band) {
    const std::optional<double> direction = number_in(labels[band].text);
    if (!direction || *direction > 360)
      throw file_error(fmt::format("no direction in '{}'", labels[band].text),
                       fmt::format("{}, band {}", where, band + 1),
                       "bands described by degrees from north such as '270', or {wind_field_directions}");
    found.push_back(*direction);
  }
  return found;
}

void require_directions(const io::WeatherTable& weather) {
  for (const io::WeatherRow& row : weather.rows)
    if (!std::isfinite(row[io::Weather::wind_direction]))
      throw file_error(fmt::format("no direction of the wind at {}", io::civil_text(row.time)),
                       weather.at(row), "wind_direction, which a {wind_field} of several directions needs");
}

/// Of "2015-06-21T15:00", or of "hours since 2015-06-21 00:00" and a number; on the weather's clock, which a time with an
/// offset from universal time is brought to.
std::optional<io::CivilMinutes> time_of(const io::BandLabel& label, double utc_offset_h) {
  std::optional<io::IsoTime> time;
  if (label.dimension.empty()) {
    time = io::parse_iso_time(label.text);
  } else if (const auto unit = io::parse_time_unit(label.unit)) {
    double value = 0;
    if (!io::parse_double(label.text, value)) return {};
    time = {unit->minutes_of(value), unit->epoch.utc_offset_h};
  }
  if (!time) return {};
  return time->minutes + std::llround(60 * (utc_offset_h - time->utc_offset_h.value_or(utc_offset_h)));
}

/// Times of the planes; none where one holds for all.
std::vector<io::CivilMinutes> times_of(const std::string& where, const std::vector<io::BandLabel>& labels,
                                       const io::WeatherTable& weather, double utc_offset_h) {
  std::vector<io::CivilMinutes> times;
  const bool named = time_of(labels[0], utc_offset_h).has_value();
  if (labels.size() == 1 && !named) return {};
  if (!named && labels.size() != weather.rows.size())
    throw file_error(fmt::format("{} bands without times", labels.size()), where,
                     fmt::format("one, {} as the run has steps, or bands described by times such as "
                                 "'2015-06-21T15:00'",
                                 weather.rows.size()));
  for (size_t band = 0; band < labels.size(); ++band) {
    const auto time = named ? time_of(labels[band], utc_offset_h) : weather.rows[band].time;
    if (!time || (band > 0 && *time <= times.back()))
      throw file_error(fmt::format("'{}'", labels[band].text), fmt::format("{}, band {}", where, band + 1),
                       "times in ascending order");
    times.push_back(*time);
  }
  if (times.front() > weather.rows.front().time || times.back() < weather.rows.back().time)
    throw file_error(
        fmt::format("times from {} to {}", io::civil_text(times.front()), io::civil_text(times.back())),
        where,
        fmt::format("{} to {}, as the run has", io::civil_text(weather.rows.front().time),
                    io::civil_text(weather.rows.back().time)));
  return times;
}

}  // namespace

float BetweenPlanes::at(float a, float b) const {
  const float value = std::fma(share, b - a, a);
  return std::isnan(value) ? value : std::clamp(value, std::min(a, b), std::max(a, b));
}

BetweenPlanes WindField::at(double direction_deg) const {
  if (factors.size() == 1) return {};
  double direction = std::fmod(direction_deg, 360.0);
  const auto after = std::upper_bound(directions_deg.begin(), directions_deg.end(), direction);
  const size_t second = static_cast<size_t>(after - directions_deg.begin()) % directions_deg.size(),
               first = (second + directions_deg.size() - 1) % directions_deg.size();
  double from = directions_deg[first], to = directions_deg[second];
  if (to <= from) to += 360;
  if (direction < from) direction += 360;
  return {first, second, static_cast<float>((direction - from) / (to - from))};
}

double WindField::reference(double wind, double measured_at_m) const {
  return wind_at(reference_height_m, wind, measured_at_m);
}

BetweenPlanes AirField::at(io::CivilMinutes time) const {
  if (planes.size() == 1) return {};
  const auto after = std::upper_bound(times.begin(), times.end(), time);
  const size_t second = std::min(static_cast<size_t>(after - times.begin()), times.size() - 1),
               first = std::min(second, second - 1);
  const double length = static_cast<double>(times[second] - times[first]);
  return {first, second, static_cast<float>(static_cast<double>(time - times[first]) / length)};
}

float AirField::offset(const BetweenPlanes& between, size_t p, double air_c) const {
  const float value = between.at(planes[between.first][p], planes[between.second][p]);
  if (std::isnan(value)) return 0;
  return absolute ? static_cast<float>(static_cast<double>(value) - air_c) : value;
}

std::pair<float, float> offset_range(const AirField& field, const Tile& tile, int64_t cols,
                                     const io::WeatherTable& weather) {
  constexpr float kBeyond = std::numeric_limits<float>::infinity();
  std::vector<std::pair<float, float>> of_planes;
  bool gaps = false;
  for (const FieldPlane& plane : field.planes) {
    std::pair<float, float> range(kBeyond, -kBeyond);
    for (int64_t row = tile.row; row < tile.row + tile.rows; ++row)
      for (const float value :
           std::span(plane).subspan(static_cast<size_t>(row * cols + tile.col), tile.cols)) {
        gaps = gaps || std::isnan(value);
        if (value < range.first) range.first = value;
        if (value > range.second) range.second = value;
      }
    of_planes.push_back(range);
  }
  std::pair<float, float> all(kBeyond, -kBeyond);
  if (gaps) all = {0, 0};
  for (const io::WeatherRow& row : weather.rows) {
    const BetweenPlanes between = field.at(row.time);
    const double base = field.absolute ? row[io::Weather::air_temperature] : 0.0;
    for (const size_t plane : {between.first, between.second}) {
      all.first = std::min(all.first, static_cast<float>(static_cast<double>(of_planes[plane].first) - base));
      all.second =
          std::max(all.second, static_cast<float>(static_cast<double>(of_planes[plane].second) - base));
    }
  }
  return all;
}

WindField read_wind_field(const WindFieldOptions& o, const LoadedCity& city, std::span<const uint8_t> ground,
                          const io::WeatherTable& weather) {
  const std::vector<io::BandLabel> labels = io::band_labels(o.file);
  const std::vector<double> directions = directions_of(o, labels);
  WindField field;
  field.height_m = o.height_m;
  field.reference_height_m = o.reference_height_m;
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!directions.empty())
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::fmod(directions[a], 360) < std::fmod(directions[b], 360);
    });
  const float scale = o.speeds ? static_cast<float>(1 / o.reference_speed_m_s.value()) : 1.0f;
  for (const size_t band : order) {
    if (!directions.empty()) field.directions_deg.push_back(std::fmod(directions[band], 360));
    const size_t n = field.directions_deg.size();
    if (n > 1 && field.directions_deg[n - 1] == field.directions_deg[n - 2])
      throw file_error(fmt::format("direction {:g} twice", field.directions_deg[n - 1]), o.file.string(),
                       "each direction once");
    field.factors.push_back(read_plane(o.file, static_cast<int>(band) + 1, city, ground,
                                       {0, kMostFactor, 1, "a share of the wind, 0 to 10"}, scale));
    field.most =
        std::max(field.most, *std::max_element(field.factors.back().begin(), field.factors.back().end()));
  }
  if (field.factors.size() > 1) require_directions(weather);
  return field;
}

AirField read_air_field(const AirFieldOptions& o, const LoadedCity& city, std::span<const uint8_t> ground,
                        const io::WeatherTable& weather, double utc_offset_h) {
  const std::vector<io::BandLabel> labels = io::band_labels(o.file);
  AirField field;
  field.absolute = o.absolute;
  field.times = times_of(o.file.string(), labels, weather, utc_offset_h);
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const FieldLimits limits = o.absolute ? FieldLimits{kColdestAir, kWarmestAir, kNone, "air of -90 to 60 °C"}
                                        : FieldLimits{-kMostOffset, kMostOffset, 0,
                                                      "K above the weather's air, -20 to 20, or "
                                                      "{air_temperature_values} absolute"};
  for (size_t band = 0; band < labels.size(); ++band) {
    field.planes.push_back(read_plane(o.file, static_cast<int>(band) + 1, city, ground, limits, 1));
  }
  const auto [low, high] =
      offset_range(field, {0, 0, city.grid.rows, city.grid.cols}, city.grid.cols, weather);
  if (low < -kMostOffset || high > kMostOffset)
    throw file_error(fmt::format("air from {:.1f} to {:.1f} K above the weather's", low, high),
                     o.file.string(), "within 20 K of it at all steps");
  return field;
}

FieldPlane under_core(const FieldPlane& plane, const Tile& tile, int64_t cols) {
  FieldPlane part;
  part.reserve(static_cast<size_t>(tile.core_pixels()));
  for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
    const auto from = plane.begin() + row * cols + tile.col;
    part.insert(part.end(), from, from + tile.cols);
  }
  return part;
}

}  // namespace lockstep::urban
