#include "urban/series/inputs/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/text/separated_fields.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

/// Names of poi.csv for a column of measurements, regardless of its case.
std::string canonical(const std::string& name) {
  static constexpr const char* known[] = {"Tmrt",  "Kdown", "Kup", "Kside",  "Ldown", "Lup",
                                          "Lside", "UTCI",  "PET", "shadow", "Ke",    "Ks",
                                          "Kw",    "Kn",    "Le",  "Ls",     "Lw",    "Ln"};
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  for (const char* k : known)
    if (lower(k) == lower(name)) return k;
  // "Keast" or "Kside_east": its first letter and that of the side
  for (const char flux : {'K', 'L'})
    for (const std::string_view side : {"east", "south", "west", "north"})
      for (const char* between : {"", "side_"})
        if (lower(name) == lower(fmt::format("{}{}{}", flux, between, side))) return {flux, side[0]};
  return name;
}

void add_mean_of_sides(MeasuredTable& table, const std::string& kind) {
  if (table.columns.count(kind + "side")) return;
  std::vector<double> mean(table.times.size(), 0.0);
  for (const char* side : {"n", "e", "s", "w"}) {
    const auto found = table.columns.find(kind + side);
    if (found == table.columns.end()) return;
    for (size_t k = 0; k < mean.size(); ++k) mean[k] += found->second[k] / 4;
  }
  table.columns[kind + "side"] = mean;
}

}  // namespace

MeasuredTable parse_measured(std::string_view text, std::string_view where, io::CivilMinutes first) {
  MeasuredTable table;
  io::TextScanner scan(text, std::string(where));
  if (!scan.next_line()) throw InputError("an empty file", where, "a header and rows of measurements");
  const std::string_view head = scan.rest_of_line();
  const char separator = head.find(';') != head.npos ? ';' : head.find('\t') != head.npos ? '\t' : ',';
  const std::vector<std::string_view> columns = io::separated_fields(head, separator, scan.where());
  std::vector<std::string> names(columns.begin(), columns.end());
  std::optional<size_t> time, hour;
  for (size_t k = 0; k < names.size(); ++k) {
    names[k] = canonical(names[k]);
    if (names[k] == "time") time = k;
    if (names[k] == "hour") hour = k;
    if (names[k] == "time" || names[k] == "hour") continue;
    if (!table.columns.try_emplace(names[k]).second)
      scan.fail(fmt::format("column '{}' is repeated", io::shown(columns[k])), "each quantity once");
  }
  if (!time && !hour) scan.fail("no column time or hour", "time (2015-06-21T15:00) or hour");
  const io::CivilMinutes midnight =
      first - ((first % io::kMinutesPerDay) + io::kMinutesPerDay) % io::kMinutesPerDay;
  while (scan.next_line()) {
    const auto fields = io::separated_fields(scan.rest_of_line(), separator, scan.where());
    if (fields.size() != names.size())
      scan.fail(fmt::format("{} fields", fields.size()), fmt::format("{} as in the header", names.size()));
    const auto number = [&](size_t k) {
      double value = 0;
      if (fields[k].empty() || fields[k] == "nan" || fields[k] == "NaN")
        return std::numeric_limits<double>::quiet_NaN();
      if (!io::parse_double(fields[k], value))
        scan.fail(fmt::format("{} is '{}'", names[k], io::shown(fields[k])), "a number, or nothing");
      return value <= -990 ? std::numeric_limits<double>::quiet_NaN() : value;
    };
    if (time) {
      const auto parsed = io::parse_iso_time(fields[*time]);
      if (!parsed)
        scan.fail(fmt::format("time is '{}'", io::shown(fields[*time])), "a time such as 2015-06-21T15:00");
      if (table.times.empty())
        table.utc_offset_h = parsed->utc_offset_h;
      else if (table.utc_offset_h != parsed->utc_offset_h)
        scan.fail(fmt::format("another offset in '{}'", io::shown(fields[*time])),
                  "one offset from universal time in all rows");
      table.times.push_back(parsed->minutes);
    } else {
      const double value = number(*hour);
      if (!(value >= 0 && value <= 24))
        scan.fail(fmt::format("hour is '{}'", io::shown(fields[*hour])), "0 to 24");
      table.times.push_back(midnight + std::llround(value * 60));
    }
    for (size_t k = 0; k < names.size(); ++k)
      if (k != time.value_or(names.size()) && k != hour.value_or(names.size()))
        table.columns[names[k]].push_back(number(k));
  }
  if (table.times.empty()) throw InputError("no rows of measurements", where, "at least one");
  for (size_t k = 1; k < table.times.size(); ++k) {
    const int64_t step = table.times[k] - table.times[k - 1];
    if (step <= 0) throw InputError("measurements out of order", where, "rows in order of time");
    table.step_min = k == 1 ? step : std::min(table.step_min, step);
  }
  add_mean_of_sides(table, "K");
  add_mean_of_sides(table, "L");
  return table;
}

}  // namespace lockstep::urban
