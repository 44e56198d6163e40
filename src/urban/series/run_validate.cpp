// A run against measurements at a point.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/record/journal.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/pictures/plot.hpp"
#include "io/pictures/png.hpp"
#include "io/series/civil_time.hpp"
#include "io/series/weather/weather.hpp"
#include "io/text/file.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"
#include "urban/series/inputs/measured.hpp"

namespace lockstep::urban {
namespace {

/// A computed column and the measured one, where both have a value.
struct Pairs {
  std::string name, unit;
  std::vector<double> hour, computed, measured;
};

std::vector<Pairs> pair_up(const SeriesResult& series, const MeasuredTable& measured,
                           const std::string& where) {
  std::vector<io::CivilMinutes> times;
  for (const std::string& time : series.times) times.push_back(io::parse_iso_time(time)->minutes);
  const int64_t step_min =
      times.size() > 1 ? std::min(measured.step_min, times[1] - times[0]) : measured.step_min;
  std::vector<Pairs> all;
  for (const auto& [column, values] : measured.columns) {
    const auto found = series.point_values.find(column);
    // Air and wind were handed in.
    if (found == series.point_values.end() || column == "Ta" || column == "RH" || column == "wind") continue;
    Pairs pairs{column, column == "Tmrt" ? "°C" : "W/m²", {}, {}, {}};
    for (size_t k = 0; k < series.times.size(); ++k) {
      const io::CivilMinutes time = times[k];
      for (size_t m = 0; m < measured.times.size(); ++m) {
        // Clocks that differ by some minutes mean the same interval.
        if (std::abs(measured.times[m] - time) * 2 >= step_min) continue;
        if (!std::isfinite(values[m]) || !std::isfinite(found->second[k])) continue;
        pairs.hour.push_back(static_cast<double>(time % io::kMinutesPerDay) / 60);
        pairs.computed.push_back(found->second[k]);
        pairs.measured.push_back(values[m]);
        break;
      }
    }
    if (!pairs.computed.empty()) all.push_back(std::move(pairs));
  }
  if (all.empty())
    throw schema_of<ValidationOptions>().error(
        {OptionError::Kind::invalid, "", "no measured value at a time of the run",
         fmt::format("times between {} and {}, and a column such as Tmrt", series.times.front(),
                     series.times.back()),
         "{measured_utc_offset} specifies the clock of the measurements", where});
  return all;
}

io::Drawing draw_pairs(const Pairs& pairs) {
  const auto unit = fmt::format("{} ({})", pairs.name, pairs.unit);
  io::PlotSeries computed{"computed", pairs.hour, pairs.computed},
      measured{"measured", pairs.hour, pairs.measured};
  io::PlotOptions course;
  course.title = pairs.name + " at the point";
  course.x_label = "hour";
  course.y_label = unit;
  course.height = 320;
  const io::Drawing lines = io::draw_plot(std::vector{computed, measured}, course);
  double low = pairs.measured.front(), high = low;
  for (const auto* values : {&pairs.measured, &pairs.computed})
    for (const double v : *values) low = std::min(low, v), high = std::max(high, v);
  io::PlotSeries dots{"hours", pairs.measured, pairs.computed}, even{"1:1", {low, high}, {low, high}};
  dots.line = false;
  even.marker = false;
  even.dashed = true;
  io::PlotOptions scatter;
  scatter.title = pairs.name + ", computed over measured";
  scatter.x_label = "measured " + unit;
  scatter.y_label = "computed " + unit;
  scatter.height = 420;
  return io::stack(std::vector{lines, io::draw_plot(std::vector{dots, even}, scatter)});
}

}  // namespace

Agreement agreement_of(const std::vector<double>& computed, const std::vector<double>& measured) {
  if (computed.size() != measured.size())
    throw InternalError(fmt::format("{} and {} values", computed.size(), measured.size()), "agreement",
                        "as many");
  Agreement a;
  a.n = static_cast<int64_t>(computed.size());
  if (a.n == 0) return a;
  const double n = static_cast<double>(a.n);
  double mean_c = 0, mean_m = 0;
  for (size_t k = 0; k < computed.size(); ++k) mean_c += computed[k] / n, mean_m += measured[k] / n;
  double squares = 0, cc = 0, mm = 0, cm = 0, potential = 0;
  for (size_t k = 0; k < computed.size(); ++k) {
    const double c = computed[k], m = measured[k];
    squares += (c - m) * (c - m);
    cc += (c - mean_c) * (c - mean_c);
    mm += (m - mean_m) * (m - mean_m);
    cm += (c - mean_c) * (m - mean_m);
    const double span = std::abs(c - mean_m) + std::abs(m - mean_m);
    potential += span * span;
  }
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  a.rmse = std::sqrt(squares / n);
  a.mbe = mean_c - mean_m;
  a.r2 = cc > 0 && mm > 0 ? cm * cm / (cc * mm) : none;
  a.d = potential > 0 ? 1 - squares / potential : none;
  return a;
}

namespace {

/// Hours that the clock of the measurements is ahead of universal time: as given, as their file has it, else the clock of the run,
/// which is the weather's. Empty where no file has one, which the run refuses.
std::optional<double> clock_of(const ValidationOptions& options, const MeasuredTable& measured) {
  if (options.measured_utc_offset_h) return options.measured_utc_offset_h;
  if (measured.utc_offset_h) return measured.utc_offset_h;
  if (options.series.utc_offset_h) return options.series.utc_offset_h;
  if (io::is_netcdf(options.series.weather)) return 0;  // gridded weather is in universal time
  return io::read_weather(options.series.weather).utc_offset_h;
}

}  // namespace

ValidationResult validate(Context& context, const ValidationOptions& options) {
  if (options.series.points.empty())
    throw schema_of<ValidationOptions>().error(
        {OptionError::Kind::missing, "poi", "no point", "the place of the measurements", ""});
  SeriesOptions series = options.series;
  ValidationResult result;
  const std::string text = io::read_text_file(options.measured, "measurements (CSV)");
  const std::string where = options.measured.string();
  // Read before the run: a table that cannot be read is refused at once.
  const std::optional<double> clock = clock_of(options, parse_measured(text, where, 0));
  if (clock) journal::found("measured_utc_offset", fmt::format("{}", *clock));
  result.series = run(context, series);
  if (result.series.points.size() != 1)
    throw InputError(fmt::format("{} points", result.series.points.size()), series.points.string(),
                     "one, the place of the measurements");
  MeasuredTable measured =
      parse_measured(text, where, io::parse_iso_time(result.series.times.front())->minutes);
  if (clock)
    for (io::CivilMinutes& time : measured.times)
      time -= std::llround((*clock - result.series.utc_offset_h) * 60);
  std::vector<io::Drawing> drawings;
  for (const Pairs& pairs : pair_up(result.series, measured, where)) {
    result.variables.emplace_back(pairs.name, agreement_of(pairs.computed, pairs.measured));
    drawings.push_back(draw_pairs(pairs));
  }
  result.plot = series.folder / "validation.png";
  io::write_drawing(result.plot, io::stack(drawings));
  return result;
}

nlohmann::ordered_json document_of(const ValidationResult& result) {
  nlohmann::ordered_json document;
  const auto number = [](double v) {
    return std::isfinite(v) ? nlohmann::ordered_json(v) : nlohmann::ordered_json();
  };
  for (const auto& [variable, a] : result.variables)
    document["variables"][variable] = {{"n", a.n},
                                       {"rmse", number(a.rmse)},
                                       {"mbe", number(a.mbe)},
                                       {"r2", number(a.r2)},
                                       {"d", number(a.d)}};
  document["plot"] = result.plot.string();
  document["run"] = document_of(result.series);
  return document;
}
std::string to_json(const ValidationResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::urban
