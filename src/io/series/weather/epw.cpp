// EnergyPlus weather: eight lines of header, then 35 fields a row (A. Crawley, J. Hand, L. Lawrie 1999).
#include <fmt/format.h>

#include <cmath>

#include "core/reports/log.hpp"
#include "io/series/weather/weather_checks.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

/// Fields from 0.
struct EpwField {
  static constexpr size_t kLeast = 22, kTemperature = 6, kHumidity = 8, kPressure = 9, kInfrared = 12,
                          kGlobal = 13, kDirect = 14, kDiffuse = 15, kDirection = 20, kWind = 21;
};
constexpr int kHeaderLines = 8;

std::vector<std::string_view> epw_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t end = std::min(line.find(','), line.size());
    std::string_view field = line.substr(0, end);
    while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
    while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
    fields.push_back(field);
    if (end == line.size()) return fields;
    line.remove_prefix(end + 1);
  }
}

double epw_number(const std::vector<std::string_view>& fields, size_t k, const char* what,
                  const TextScanner& scan) {
  double value = 0;
  if (k >= fields.size()) scan.fail(fmt::format("{} is missing", what), "a number");
  if (!parse_double(fields[k], value) || !std::isfinite(value))
    scan.fail(fmt::format("{} is '{}'", what, shown(fields[k])), "a number");
  return value;
}

int epw_integer(const std::vector<std::string_view>& fields, size_t k, const char* what, int low, int high,
                const TextScanner& scan) {
  const double value = epw_number(fields, k, what, scan);
  if (value != std::floor(value) || value < low || value > high)
    scan.fail(fmt::format("{} is '{}'", what, shown(fields[k])),
              fmt::format("a whole number from {} to {}", low, high));
  return static_cast<int>(value);
}

void parse_location(const std::vector<std::string_view>& fields, WeatherTable& table,
                    const TextScanner& scan) {
  const auto within = [&](size_t k, const char* what, double low, double high) {
    const double value = epw_number(fields, k, what, scan);
    if (value < low || value > high)
      scan.fail(fmt::format("{} is {:g}", what, value), fmt::format("{:g} to {:g}", low, high));
    return value;
  };
  table.latitude_deg = within(6, "the latitude (field 7)", -90, 90);
  table.longitude_deg = within(7, "the longitude (field 8)", -180, 180);
  table.utc_offset_h = within(8, "the time zone (field 9)", -14, 14);
  table.elevation_m = within(9, "the elevation (field 10)", -1000, 9999.9);
}

WeatherRow parse_epw_row(const std::vector<std::string_view>& fields, int rows_per_hour,
                         const TextScanner& scan, CivilTime& date) {
  if (fields.size() < EpwField::kLeast)
    scan.fail(fmt::format("{} fields", fields.size()), "35 fields, at least 22");
  date.year = epw_integer(fields, 0, "the year (field 1)", 1, 9999, scan);
  date.month = epw_integer(fields, 1, "the month (field 2)", 1, 12, scan);
  date.day = epw_integer(fields, 2, "the day (field 3)", 1, 31, scan);
  const int hour = epw_integer(fields, 3, "the hour (field 4)", 1, 24, scan);
  const int minute = epw_integer(fields, 4, "the minute (field 5)", 0, 60, scan);
  // Hour h is the interval from h - 1 to h; hourly files give its minute as 0 or 60.
  date.hour = rows_per_hour > 1 && minute > 0 ? hour - 1 : hour;
  date.minute = rows_per_hour > 1 ? minute : 0;
  WeatherRow row;
  row.line = scan.line();
  const auto take = [&](Weather quantity, size_t k, double missing_from, double factor = 1) {
    const double value =
        epw_number(fields, k, fmt::format("{} (field {})", name(quantity), k + 1).c_str(), scan);
    if (value < missing_from) take_value(row, quantity, value * factor);
  };
  take(Weather::air_temperature, EpwField::kTemperature, 99.9);
  take(Weather::relative_humidity, EpwField::kHumidity, 999);
  take(Weather::pressure, EpwField::kPressure, 999999, 0.01);  // Pa
  take(Weather::longwave_down, EpwField::kInfrared, 9999);
  take(Weather::global, EpwField::kGlobal, 9999);
  take(Weather::direct, EpwField::kDirect, 9999);
  take(Weather::diffuse, EpwField::kDiffuse, 9999);
  take(Weather::wind_speed, EpwField::kWind, 999);
  double direction = 0;  // unlike the others, it may be no number: most runs do not use it
  if (parse_double(fields[EpwField::kDirection], direction) && direction < 999)
    take_value(row, Weather::wind_direction, direction);
  return row;
}

struct DatedRow {
  CivilTime date;
  WeatherRow row;
};

/// A typical year is made of months of several years: all of it is taken as one year.
void take_as_one_year(std::vector<DatedRow>& rows, const std::string& where) {
  bool leap = false, several = false;
  int first = rows.front().date.year, last = first;
  for (const DatedRow& r : rows) {
    leap = leap || (r.date.month == 2 && r.date.day == 29);
    several = several || r.date.year != rows.front().date.year;
    first = std::min(first, r.date.year);
    last = std::max(last, r.date.year);
  }
  if (!several) return;
  // A series over the turn of a year runs on; a typical year jumps between years.
  for (size_t k = 1; k < rows.size(); ++k) {
    const int jump = rows[k].date.year - rows[k - 1].date.year;
    if (jump != 0 && !(jump == 1 && rows[k].date.month == 1 && rows[k - 1].date.month == 12)) {
      const int year = leap ? 2000 : 2001;
      for (DatedRow& r : rows) r.date.year = year;
      logging::info("{}: a typical year, of months from {} to {}: its times count as those of {}", where,
                    first, last, year);
      return;
    }
  }
}

}  // namespace

WeatherTable parse_epw(std::string_view text, std::string_view where) {
  WeatherTable table;
  table.where = where;
  TextScanner scan(text, table.where);
  int rows_per_hour = 1;
  for (int line = 0; line < kHeaderLines; ++line) {
    if (!scan.next_line('\0'))
      scan.fail("the header ends early", "eight lines, from LOCATION to DATA PERIODS");
    const auto fields = epw_fields(scan.rest_of_line());
    if (line == 0) parse_location(fields, table, scan);
    if (fields[0] == "DATA PERIODS") {
      rows_per_hour = epw_integer(fields, 2, "the rows an hour (field 3)", 1, 60, scan);
      break;
    }
  }
  std::vector<DatedRow> rows;
  while (scan.next_line('\0')) {
    DatedRow row;
    row.row = parse_epw_row(epw_fields(scan.rest_of_line()), rows_per_hour, scan, row.date);
    rows.push_back(row);
  }
  if (rows.empty()) throw InputError("no rows of weather", table.where, "at least one row");
  take_as_one_year(rows, table.where);
  for (DatedRow& r : rows) {
    if (!is_date(r.date.year, r.date.month, r.date.day))
      throw InputError(fmt::format("{}-{}-{}", r.date.year, r.date.month, r.date.day), table.at(r.row),
                       "a date of the calendar");
    r.row.time = civil_minutes(r.date);
    append_row(table, r.row);
  }
  finish_rows(table);
  return table;
}

}  // namespace lockstep::io
