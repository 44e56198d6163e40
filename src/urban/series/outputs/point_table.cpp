#include "urban/series/outputs/point_table.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/files/atomic_file.hpp"
#include "io/series/csv.hpp"
#include "urban/series/tiles.hpp"

namespace lockstep::urban {
SeriesPointTable::SeriesPointTable(const SeriesInputs& inputs) : inputs_(inputs) {
  const auto add = [&](const char* name, auto value) {
    std::vector<double> column;
    column.reserve(rows());
    for (size_t point = 0; point < inputs.points.size(); ++point)
      for (size_t step = 0; step < inputs.steps.size(); ++step)
        column.push_back(value(inputs.weather.rows[step], inputs.steps[step].forcing));
    columns_.emplace_back(name, std::move(column));
  };
  using Row = io::WeatherRow;
  using Forcing = StepForcing;
  add("Ta", [](const Row&, const Forcing& f) { return f.air_c; });
  add("RH", [](const Row&, const Forcing& f) { return f.humidity_percent; });
  add("wind", [](const Row&, const Forcing& f) { return f.wind_m_s; });
  add("Kglobal", [](const Row& row, const Forcing&) { return row[io::Weather::global]; });
  add("Kdirect", [](const Row&, const Forcing& f) { return f.beam_w_m2; });
  add("Kdiffuse", [](const Row&, const Forcing& f) { return f.diffuse_w_m2; });
  add("sun_altitude", [](const Row&, const Forcing& f) { return f.sun_altitude_deg; });
  add("sun_azimuth", [](const Row&, const Forcing& f) { return f.sun_azimuth_deg; });
  first_value_ = columns_.size();
  for (size_t v = 0; v < kPointValues; ++v)
    columns_.emplace_back(name(static_cast<PointValue>(v)), std::vector<double>(rows()));
}

void SeriesPointTable::take(size_t point, size_t step, const float* values) {
  for (size_t v = 0; v < kPointValues; ++v)
    columns_[first_value_ + v].second[point * inputs_.steps.size() + step] = static_cast<double>(values[v]);
}

std::filesystem::path SeriesPointTable::write(const std::filesystem::path& file) const {
  if (inputs_.points.empty()) return {};
  std::string text = "id,time";
  for (const auto& [column, values] : columns_) text += "," + column;
  text += "\n";
  for (size_t point = 0; point < inputs_.points.size(); ++point)
    for (size_t step = 0; step < inputs_.steps.size(); ++step) {
      text += io::csv_field(inputs_.points[point].id) + "," + io::civil_text(inputs_.steps[step].time);
      for (const auto& [column, values] : columns_) {
        const double value = values[point * inputs_.steps.size() + step];
        text += std::isnan(value) ? "," : fmt::format(",{:.7g}", value);
      }
      text += "\n";
    }
  write_file(file, text);
  return file;
}

void SeriesPointTable::fill(std::map<std::string, std::vector<double>>& columns) const {
  for (const auto& [column, values] : columns_) columns[column] = values;
}

}  // namespace lockstep::urban
