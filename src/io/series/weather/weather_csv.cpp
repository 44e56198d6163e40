// Weather as CSV: time, Ta, RH, wind, Kglobal, and Kdirect, Kdiffuse, Ldown, pressure, wind_direction where there are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "io/series/weather/weather_checks.hpp"
#include "io/text/separated_fields.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// Which column holds what.
struct Columns {
  size_t count = 0;
  size_t time = 0;
  std::array<std::optional<size_t>, kWeatherQuantities> of{};
  std::vector<std::string> unread;
};

Columns parse_header(const std::vector<std::string_view>& names, const TextScanner& scan) {
  Columns columns;
  columns.count = names.size();
  std::optional<size_t> time;
  for (size_t k = 0; k < names.size(); ++k) {
    const std::string found = in_lower_case(names[k]);
    bool known = found == "time";
    if (known) {
      if (time) scan.fail("column 'time' is repeated", "each name once");
      time = k;
    }
    for (size_t q = 0; q < kWeatherQuantities; ++q) {
      if (found != in_lower_case(name(static_cast<Weather>(q)))) continue;
      if (columns.of[q]) scan.fail(fmt::format("column '{}' is repeated", shown(names[k])), "each name once");
      columns.of[q] = k;
      known = true;
    }
    if (!known) columns.unread.push_back(shown(names[k]));
  }
  std::vector<std::string_view> missing;
  if (!time) missing.push_back("time");
  for (const Weather q :
       {Weather::air_temperature, Weather::relative_humidity, Weather::wind_speed, Weather::global})
    if (!columns.of[static_cast<size_t>(q)]) missing.push_back(name(q));
  if (!missing.empty())
    scan.fail(
        fmt::format("no column {}", fmt::join(missing, ", ")),
        "a header with time, Ta, RH, wind, Kglobal and, where known, Kdirect, Kdiffuse, Ldown, pressure, "
        "wind_direction");
  columns.time = *time;
  return columns;
}

/// A cell; nothing where it is empty, "nan" or -999.
std::optional<double> parse_cell(std::string_view cell, std::string_view column, const TextScanner& scan) {
  const std::string text = in_lower_case(cell);
  if (text.empty() || text == "nan" || text == "na") return {};
  double value = 0;
  if (!parse_double(cell, value) || !std::isfinite(value))
    scan.fail(fmt::format("column {} is '{}'", column, shown(cell)), "a number, or nothing");
  if (value <= -990) return {};
  return value;
}

}  // namespace

WeatherTable parse_weather_csv(std::string_view text, std::string_view where) {
  WeatherTable table;
  table.where = where;
  TextScanner scan(text, table.where);
  if (!scan.next_line()) throw InputError("an empty file", table.where, "a header and rows of weather");
  const std::string_view head = scan.rest_of_line();
  const char separator = head.find('\t') != head.npos ? '\t' : head.find(';') != head.npos ? ';' : ',';
  Columns columns = parse_header(separated_fields(head, separator, scan.where()), scan);
  table.unread = std::move(columns.unread);
  while (scan.next_line()) {
    const auto fields = separated_fields(scan.rest_of_line(), separator, scan.where());
    if (fields.size() != columns.count)
      scan.fail(fmt::format("{} fields", fields.size()), fmt::format("{} as in the header", columns.count));
    const auto time = parse_iso_time(fields[columns.time]);
    if (!time)
      scan.fail(fmt::format("time is '{}'", shown(fields[columns.time])), "a time such as 2015-06-21T15:00");
    if (table.rows.empty())
      table.utc_offset_h = time->utc_offset_h;
    else if (table.utc_offset_h != time->utc_offset_h)
      scan.fail(fmt::format("another offset in '{}'", shown(fields[columns.time])),
                "one offset from universal time in all rows");
    WeatherRow row;
    row.line = scan.line();
    row.time = time->minutes;
    for (size_t q = 0; q < kWeatherQuantities; ++q) {
      if (!columns.of[q]) continue;
      const Weather quantity = static_cast<Weather>(q);
      if (const auto value = parse_cell(fields[*columns.of[q]], name(quantity), scan))
        take_value(row, quantity, *value);
    }
    append_row(table, row);
  }
  finish_rows(table);
  return table;
}

}  // namespace lockstep::io
