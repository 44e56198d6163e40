// Weather of a place as a table: EPW, UMEP's text of 24 columns, and CSV.
#pragma once

#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/series/civil_time.hpp"
#include "io/text/input_memory.hpp"

namespace lockstep::io {

/// Quantities of a row, in the order of WeatherRow::values.
enum class Weather : uint8_t {
  air_temperature,    ///< °C
  relative_humidity,  ///< %
  wind_speed,         ///< m/s
  global,             ///< shortwave on the horizontal, W/m²
  direct,             ///< beam on a plane that faces the sun, W/m²
  diffuse,            ///< shortwave from the sky on the horizontal, W/m²
  longwave_down,      ///< W/m²
  pressure,           ///< hPa
  wind_direction      ///< degrees clockwise from north that the wind comes from
};
inline constexpr size_t kWeatherQuantities = 9;
std::string_view name(Weather quantity);

struct WeatherRow {
  CivilMinutes time = 0;                          ///< local time at the interval's end
  int64_t line = 0;                               ///< of the file
  std::array<double, kWeatherQuantities> values;  ///< NaN = missing
  /// The first value that weather cannot have, NaN in `values`: complete_weather() refuses a row with it.
  struct Impossible {
    int8_t quantity = -1;  // none
    double value = 0;
  } impossible;

  WeatherRow() { values.fill(std::numeric_limits<double>::quiet_NaN()); }
  double operator[](Weather quantity) const { return values[static_cast<size_t>(quantity)]; }
  double& operator[](Weather quantity) { return values[static_cast<size_t>(quantity)]; }
};

/// Rows in order of time, evenly spaced, without gaps: see complete_weather.
struct WeatherTable {
  std::string where;  ///< the file, for messages
  std::vector<WeatherRow> rows;
  std::vector<std::string> unread;  ///< columns of a CSV that mean nothing here
  InputClaim claim = {};
  int64_t step_min = 60;
  bool horizontal_direct = false;  ///< its direct radiation is that on the horizontal
  std::optional<double> utc_offset_h, latitude_deg, longitude_deg, elevation_m;  ///< if in the file

  bool has(Weather quantity) const;             ///< in any row
  std::string at(const WeatherRow& row) const;  ///< "file:line"
};

/// The formats' parsers of text. All refuse, naming file and line: malformed rows, times that are unsorted,
/// twice there or not in the calendar. Values outside what weather can be are refused with the rows that are used.
WeatherTable parse_epw(std::string_view text, std::string_view where);
WeatherTable parse_umep_met(std::string_view text, std::string_view where);
WeatherTable parse_weather_csv(std::string_view text, std::string_view where);
/// By the content: "LOCATION," begins an EPW; a header with Ta and RH a CSV; else UMEP's columns.
WeatherTable parse_weather(std::string_view text, std::string_view where);
WeatherTable read_weather(const std::filesystem::path& path);

/// Where gridded weather is read, and the clock that its times are taken to.
struct WeatherPlace {
  double latitude_deg = 0, longitude_deg = 0;
  bool nearest = false;  ///< cell; else between the four around
  double utc_offset_h = 0;
};
/// ERA5's hourly single levels as NetCDF, of the old and the new Climate Data Store: u10, v10, t2m, d2m, ssrd and, where there
/// are, fdir, strd, sp. Sums of an hour end at its label and become W/m²; the others are those of the label.
WeatherTable read_era5(const std::filesystem::path& path, const WeatherPlace& place);

/// A gap that fill_gaps filled.
struct FilledGap {
  std::string quantity;  ///< "row" where whole rows were missing
  CivilMinutes first = 0, last = 0;
};

/// The rows from `first` to `last` (interval ends, both included; default: all). Gaps of up to three hours are filled
/// linearly from the values around them, wind directions by those before. Throws InputError for values that weather
/// cannot have, for requested times that the file does not contain, for longer gaps in these times, and if Ta, RH or
/// Kglobal are missing throughout. `filled` receives the filled gaps.
WeatherTable complete_weather(const WeatherTable& table, std::optional<CivilMinutes> first = {},
                              std::optional<CivilMinutes> last = {},
                              std::vector<FilledGap>* filled = nullptr);

}  // namespace lockstep::io
