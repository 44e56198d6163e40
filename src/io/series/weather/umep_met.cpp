// UMEP's meteorological text: a header line, then 24 columns a row, -999 for what is missing.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <string>
#include <utility>

#include "io/series/weather/weather_checks.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

/// Columns from 0: year, day of the year, hour, minute, then fluxes.
struct MetColumn {
  static constexpr size_t kCount = 24, kWind = 9, kHumidity = 10, kTemperature = 11, kPressure = 12,
                          kGlobal = 14, kLongwave = 16, kDiffuse = 21, kDirect = 22, kDirection = 23;
};

/// Names of columns in files of UMEP and SUEWS.
constexpr std::pair<std::string_view, size_t> kNames[] = {{"iy", 0},
                                                          {"id", 1},
                                                          {"it", 2},
                                                          {"imin", 3},
                                                          {"wind", MetColumn::kWind},
                                                          {"u", MetColumn::kWind},
                                                          {"rh", MetColumn::kHumidity},
                                                          {"td", MetColumn::kTemperature},
                                                          {"tair", MetColumn::kTemperature},
                                                          {"press", MetColumn::kPressure},
                                                          {"kdn", MetColumn::kGlobal},
                                                          {"kdown", MetColumn::kGlobal},
                                                          {"ldown", MetColumn::kLongwave},
                                                          {"kdiff", MetColumn::kDiffuse},
                                                          {"kdir", MetColumn::kDirect},
                                                          {"wd", MetColumn::kDirection},
                                                          {"wdir", MetColumn::kDirection}};

/// Columns are read by position: throws where the header has a known name elsewhere.
void check_header(TextScanner head, const TextScanner& scan) {
  head.next_line('\0');
  for (size_t k = 0; !head.at_line_end(); ++k) {
    std::string name(head.field());
    if (k == 0 && name == "%") name = head.field();
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (k == 0 && name.starts_with('%')) name.erase(0, 1);
    for (const auto& [known, position] : kNames)
      if (name == known && position != k)
        scan.fail(fmt::format("column {} is '{}'", k + 1, shown(name)),
                  fmt::format("it as column {}: columns are read by position", position + 1));
  }
}

bool is_absent(double value) { return value <= -990; }

WeatherRow parse_met_row(const std::array<double, MetColumn::kCount>& cells, const TextScanner& scan) {
  const auto whole = [&](size_t k, const char* what, double low, double high) {
    if (cells[k] != std::floor(cells[k]) || cells[k] < low || cells[k] > high)
      scan.fail(fmt::format("{} is {:g}", what, cells[k]),
                fmt::format("a whole number from {:g} to {:g}", low, high));
    return static_cast<int>(cells[k]);
  };
  const int year = whole(0, "the year (column 1)", 1, 9999);
  const int day = whole(1, "the day of the year (column 2)", 1, is_leap_year(year) ? 366 : 365);
  const int hour = whole(2, "the hour (column 3)", 0, 24), minute = whole(3, "the minute (column 4)", 0, 60);
  WeatherRow row;
  row.line = scan.line();
  row.time = civil_minutes({year, 1, 1, hour, minute}) + (day - 1) * kMinutesPerDay;
  const auto take = [&](Weather quantity, size_t k, double factor = 1) {
    if (!is_absent(cells[k])) take_value(row, quantity, cells[k] * factor);
  };
  take(Weather::wind_speed, MetColumn::kWind);
  take(Weather::relative_humidity, MetColumn::kHumidity);
  take(Weather::air_temperature, MetColumn::kTemperature);
  take(Weather::pressure, MetColumn::kPressure, 10);  // kPa
  take(Weather::global, MetColumn::kGlobal);
  take(Weather::longwave_down, MetColumn::kLongwave);
  take(Weather::diffuse, MetColumn::kDiffuse);
  take(Weather::direct, MetColumn::kDirect);
  take(Weather::wind_direction, MetColumn::kDirection);
  return row;
}

}  // namespace

WeatherTable parse_umep_met(std::string_view text, std::string_view where) {
  WeatherTable table;
  table.where = where;
  TextScanner scan(text, table.where);
  bool first = true;
  while (scan.next_line('\0')) {
    if (first) {
      first = false;
      const std::string_view names = scan.rest_of_line();
      TextScanner head(names, table.where);
      double ignored = 0;
      head.next_line('\0');
      if (!parse_double(head.field(), ignored)) {
        check_header(TextScanner(names, table.where), scan);
        continue;
      }
      throw InputError("no line of column names", scan.where(), "a header such as '%iy id it imin …'");
    }
    std::array<double, MetColumn::kCount> cells;
    size_t k = 0;
    for (; k < MetColumn::kCount && !scan.at_line_end(); ++k)
      cells[k] = scan.number(fmt::format("column {}", k + 1).c_str());
    // The final line of -9 by which some of these files end.
    if (k > 0 && k < MetColumn::kCount && cells[0] == -9) break;
    if (k < MetColumn::kCount || !scan.at_line_end())
      scan.fail(k < MetColumn::kCount ? fmt::format("{} columns", k) : "more than 24 columns",
                "24 columns: year, day, hour, minute, … as UMEP writes them");
    append_row(table, parse_met_row(cells, scan));
  }
  finish_rows(table);
  return table;
}

}  // namespace lockstep::io
