#include "urban/series/outputs/point_table.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/files/atomic_file.hpp"
#include "io/series/csv.hpp"
#include "urban/series/tiles.hpp"

namespace lockstep::urban {
namespace {
constexpr size_t kAir = 0, kWind = 2;  // columns of the weather, or of the point's own where fields are given
}

std::string_view name(PointValue value) {
  static constexpr std::string_view names[kPointValues] = {
      "Kdown",   "Kup", "Kside", "Ldown", "Lup", "Lside", "Tmrt", "UTCI", "PET", "shadow", "gvf", "svf",
      "svf_veg", "Ta",  "wind",  "Ke",    "Ks",  "Kw",    "Kn",   "Le",   "Ls",  "Lw",     "Ln"};
  return names[static_cast<size_t>(value)];
}

StepLayout::StepLayout(const Tile& tile, size_t outputs, const std::vector<SeriesPoint>& points)
    : pixels_(static_cast<size_t>(tile.core_pixels())), outputs_(outputs) {
  for (size_t k = 0; k < points.size(); ++k) {
    const SeriesPoint& p = points[k];
    if (p.row >= tile.row && p.row < tile.row + tile.rows && p.col >= tile.col &&
        p.col < tile.col + tile.cols)
      points_.push_back(k);
  }
}

SeriesPointTable::SeriesPointTable(const SeriesInputs& inputs)
    : own_air_(!inputs.air_field.empty()), own_wind_(!inputs.wind_field.empty()) {
  for (const SeriesPoint& point : inputs.points) ids_.push_back(point.id);
  for (const WeatherStep& step : inputs.steps) times_.push_back(io::civil_text(step.time));
  const auto add = [&](const char* name, auto value) {
    std::vector<double> column;
    column.reserve(rows());
    for (size_t point = 0; point < ids_.size(); ++point)
      for (size_t step = 0; step < times_.size(); ++step)
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
    if (static_cast<PointValue>(v) != PointValue::air && static_cast<PointValue>(v) != PointValue::wind)
      columns_.emplace_back(name(static_cast<PointValue>(v)), std::vector<double>(rows()));
}

void SeriesPointTable::take(size_t point, size_t step, const float* values) {
  const size_t row = point * times_.size() + step;
  for (size_t v = 0, column = first_value_; v < kPointValues; ++v) {
    const double value = static_cast<double>(values[v]);
    const auto kind = static_cast<PointValue>(v);
    if (kind != PointValue::air && kind != PointValue::wind)
      columns_[column++].second[row] = value;
    else if (kind == PointValue::air ? own_air_ : own_wind_)
      columns_[kind == PointValue::air ? kAir : kWind].second[row] = value;
  }
}

std::filesystem::path SeriesPointTable::write(const std::filesystem::path& file) const {
  if (ids_.empty()) return {};
  std::string text = "id,time";
  for (const auto& [column, values] : columns_) text += "," + column;
  text += "\n";
  for (size_t point = 0; point < ids_.size(); ++point)
    for (size_t step = 0; step < times_.size(); ++step) {
      text += io::csv_field(ids_[point]) + "," + times_[step];
      for (const auto& [column, values] : columns_) {
        const double value = values[point * times_.size() + step];
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
