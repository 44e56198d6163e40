#include "io/series/weather/weather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "io/series/weather/weather_checks.hpp"
#include "io/text/parse_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

struct WeatherLimits {
  std::string_view name;
  double low, high;
  bool low_open;
  std::string_view expected;
};

constexpr int kLastYear = 6000;  // of the formulas for the sun's position
constexpr std::array<WeatherLimits, kWeatherQuantities> kLimits = {{
    {"Ta", -90, 60, false, "-90 to 60 °C"},
    {"RH", 0, 100, true, "above 0 and at most 100 %"},
    {"wind", 0, 100, false, "0 to 100 m/s"},
    {"Kglobal", -10, 1600, false, "0 to 1600 W/m²"},
    {"Kdirect", -10, 1600, false, "0 to 1600 W/m²"},
    {"Kdiffuse", -10, 1600, false, "0 to 1600 W/m²"},
    {"Ldown", 40, 700, false, "40 to 700 W/m²"},
    {"pressure", 400, 1100, false, "400 to 1100 hPa"},
    {"wind_direction", 0, 360, false, "0 to 360 degrees"},
}};

constexpr auto kWeather = "weather: EPW, UMEP's 24 columns, or CSV";
constexpr int64_t kLongestGapMin = 180;
constexpr int64_t kShortestStepMin = 1, kLongestStepMin = 360;

bool is_sunlight(Weather q) { return q == Weather::global || q == Weather::direct || q == Weather::diffuse; }

}  // namespace

std::string_view name(Weather quantity) { return kLimits[static_cast<size_t>(quantity)].name; }

bool WeatherTable::has(Weather quantity) const {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const WeatherRow& row) { return std::isfinite(row[quantity]); });
}

std::string WeatherTable::at(const WeatherRow& row) const { return fmt::format("{}:{}", where, row.line); }

void take_value(WeatherRow& row, Weather quantity, double value) {
  const WeatherLimits& limits = kLimits[static_cast<size_t>(quantity)];
  if (value >= limits.low && value <= limits.high && !(limits.low_open && value <= limits.low))
    row[quantity] = is_sunlight(quantity) ? std::max(value, 0.0) : value;
  else if (quantity != Weather::wind_direction && row.impossible.quantity < 0)
    row.impossible = {static_cast<int8_t>(quantity), value};
}

void append_row(WeatherTable& table, const WeatherRow& row) {
  if (const int year = civil_time(row.time).year; year > kLastYear)
    throw InputError(fmt::format("the year {}", year), table.at(row), fmt::format("years to {}", kLastYear));
  if (!table.rows.empty()) {
    const WeatherRow& before = table.rows.back();
    if (row.time == before.time)
      throw InputError(fmt::format("{} is repeated", civil_text(row.time)), table.at(row),
                       fmt::format("each time once (it is also in line {})", before.line));
    if (row.time < before.time)
      throw InputError(fmt::format("{} after {}", civil_text(row.time), civil_text(before.time)),
                       table.at(row), "rows in order of time");
  }
  table.claim.reach((table.rows.size() + 1) * sizeof(WeatherRow), "its rows", table.where);
  table.rows.push_back(row);
}

void finish_rows(WeatherTable& table) {
  if (table.rows.empty()) throw InputError("no rows of weather", table.where, "at least one row");
  if (table.rows.size() == 1) return;
  // The step is the most frequent distance; a gap is a multiple of it.
  std::map<int64_t, int64_t> distances;
  for (size_t k = 1; k < table.rows.size(); ++k) ++distances[table.rows[k].time - table.rows[k - 1].time];
  table.step_min = std::max_element(distances.begin(), distances.end(), [](const auto& a, const auto& b) {
                     return a.second < b.second;
                   })->first;
  if (table.step_min < kShortestStepMin || table.step_min > kLongestStepMin)
    throw InputError(fmt::format("times {} minutes apart", table.step_min), table.at(table.rows[1]),
                     "steps of 1 minute to 6 hours");
  for (size_t k = 1; k < table.rows.size(); ++k)
    if ((table.rows[k].time - table.rows[k - 1].time) % table.step_min != 0)
      throw InputError(fmt::format("{} minutes after the row before, where {} are usual",
                                   table.rows[k].time - table.rows[k - 1].time, table.step_min),
                       table.at(table.rows[k]), "evenly spaced times");
}

WeatherTable parse_weather(std::string_view text, std::string_view where) {
  std::string_view head = text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text;
  if (head.starts_with("LOCATION")) return parse_epw(text, where);
  std::string first(head.substr(0, std::min(head.find_first_of("\r\n"), size_t{1000})));
  std::transform(first.begin(), first.end(), first.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool separated = first.find_first_of(",;\t") != first.npos;
  if (separated && first.find("time") != first.npos) return parse_weather_csv(text, where);
  if (separated && first.find("ta") != first.npos) return parse_weather_csv(text, where);
  if (first.find('\0') != first.npos) throw InputError("the file is not a text file", where, kWeather);
  return parse_umep_met(text, where);
}

WeatherTable read_weather(const std::filesystem::path& path) {
  return parse_text_file(path, kWeather, &parse_weather);
}

// ---- Gaps ----

namespace {

/// Rows of the requested period, one before and one after it. Missing rows are inserted as rows of NaN.
struct GapGrid {
  std::vector<WeatherRow> rows;
  std::vector<bool> inserted;
  size_t first = 0, last = 0;

  void add(const WeatherRow& row, bool is_inserted) {
    rows.push_back(row);
    inserted.push_back(is_inserted);
  }
};

[[noreturn]] void throw_outside(const WeatherTable& table, CivilMinutes time) {
  throw InputError(
      fmt::format("no weather at {}", civil_text(time)), table.where,
      fmt::format("a time of the file: {} to {}, every {} min", civil_text(table.rows.front().time),
                  civil_text(table.rows.back().time), table.step_min));
}

GapGrid spread_rows(const WeatherTable& table, CivilMinutes first, CivilMinutes last,
                    std::vector<FilledGap>* filled) {
  if (first < table.rows.front().time || first > table.rows.back().time) throw_outside(table, first);
  if (last < first)
    throw InputError(fmt::format("the end {} lies before {}", civil_text(last), civil_text(first)), "--to",
                     "a time not before --from");
  if (last > table.rows.back().time) throw_outside(table, last);
  GapGrid grid;
  bool begun = false;
  for (const WeatherRow& row : table.rows) {
    if (!grid.rows.empty() && row.time > first && grid.rows.back().time <= last) {
      const WeatherRow before = grid.rows.back();
      const int64_t missing = (row.time - before.time) / table.step_min - 1;
      if (missing * table.step_min > kLongestGapMin)
        throw InputError(fmt::format("no rows between {} (line {}) and {}", civil_text(before.time),
                                     before.line, civil_text(row.time)),
                         table.at(row), "gaps of at most 3 hours");
      for (int64_t k = 1; k <= missing; ++k) {
        WeatherRow gap;
        gap.time = before.time + k * table.step_min;
        gap.line = before.line;
        grid.add(gap, true);
      }
      if (missing > 0 && filled)
        filled->push_back({"row", before.time + table.step_min, row.time - table.step_min});
    }
    const auto& [quantity, value] = row.impossible;
    if (quantity >= 0 && row.time >= first && row.time <= last)
      throw InputError(fmt::format("{} is {:g}", kLimits[size_t(quantity)].name, value), table.at(row),
                       kLimits[size_t(quantity)].expected);
    grid.add(row, false);
  }
  for (size_t k = 0; k < grid.rows.size(); ++k) {
    if (grid.rows[k].time < first || grid.rows[k].time > last) continue;
    if (!begun) grid.first = k;
    begun = true;
    grid.last = k;
  }
  if (!begun) throw_outside(table, first);
  return grid;
}

void interpolate(const WeatherTable& table, GapGrid& grid, Weather quantity, std::vector<FilledGap>* filled) {
  for (size_t k = grid.first; k <= grid.last; ++k) {
    if (std::isfinite(grid.rows[k][quantity])) continue;
    size_t before = k, behind = k;
    while (before > 0 && !std::isfinite(grid.rows[before][quantity])) --before;
    while (behind + 1 < grid.rows.size() && !std::isfinite(grid.rows[behind][quantity])) ++behind;
    WeatherRow &a = grid.rows[before], &b = grid.rows[behind];
    const bool open = !std::isfinite(a[quantity]) || !std::isfinite(b[quantity]);
    const int64_t minutes = b.time - a.time - table.step_min;
    if (open || minutes > kLongestGapMin)
      throw InputError(fmt::format("{} is missing from {} to {} (lines {} to {})", name(quantity),
                                   civil_text(open ? grid.rows[k].time : a.time + table.step_min),
                                   civil_text(open ? grid.rows[behind].time : b.time - table.step_min),
                                   open ? grid.rows[k].line : a.line, b.line),
                       table.at(grid.rows[k]),
                       open ? "values at both ends, or another --from and --to" : "gaps of at most 3 hours");
    bool own = false;  // rows that are missing as a whole are reported as rows
    for (size_t m = before + 1; m < behind; ++m) {
      const double share =
          static_cast<double>(grid.rows[m].time - a.time) / static_cast<double>(b.time - a.time);
      grid.rows[m][quantity] = a[quantity] + share * (b[quantity] - a[quantity]);
      own = own || !grid.inserted[m];
    }
    if (filled && own)
      filled->push_back(
          {std::string(name(quantity)), grid.rows[before + 1].time, grid.rows[behind - 1].time});
  }
}

}  // namespace

namespace {

/// A calm has no direction, and a mean of directions is none: that of at most three hours before holds.
void carry_direction(GapGrid& grid) {
  CivilMinutes known = 0;
  double direction = std::numeric_limits<double>::quiet_NaN();
  for (WeatherRow& row : grid.rows) {
    double& own = row[Weather::wind_direction];
    if (std::isfinite(own)) {
      known = row.time;
      direction = own;
    } else if (row.time - known <= kLongestGapMin) {
      own = direction;
    }
  }
}

}  // namespace

WeatherTable complete_weather(const WeatherTable& table, std::optional<CivilMinutes> first,
                              std::optional<CivilMinutes> last, std::vector<FilledGap>* filled) {
  if (table.rows.empty()) throw InputError("no rows of weather", table.where, "at least one row");
  GapGrid grid = spread_rows(table, first.value_or(table.rows.front().time),
                             last.value_or(table.rows.back().time), filled);
  for (size_t q = 0; q < kWeatherQuantities; ++q) {
    const Weather quantity = static_cast<Weather>(q);
    if (quantity == Weather::wind_direction) {
      carry_direction(grid);
    } else if (table.has(quantity)) {
      interpolate(table, grid, quantity, filled);
    } else if (quantity == Weather::air_temperature || quantity == Weather::relative_humidity ||
               quantity == Weather::global) {
      throw InputError(fmt::format("{} is missing in all rows", name(quantity)), table.where,
                       "Ta, RH and Kglobal");
    }
  }
  WeatherTable out = table;
  out.rows.assign(grid.rows.begin() + static_cast<ptrdiff_t>(grid.first),
                  grid.rows.begin() + static_cast<ptrdiff_t>(grid.last) + 1);
  return out;
}

}  // namespace lockstep::io
