// The plot of a forecast.
#include <algorithm>

#include "io/pictures/plot.hpp"
#include "io/pictures/png.hpp"
#include "lockstep/forecast/curve.hpp"

namespace lockstep::forecast {

void draw_forecast(const std::filesystem::path& file, std::span<const double> steps,
                   std::span<const double> losses, const CurveForecast& f, const std::string& title) {
  const auto series = [&](std::string label, io::Rgb ink, bool dashed, auto value) {
    io::PlotSeries s{.name = std::move(label),
                     .x = {},
                     .y = {},
                     .line = true,
                     .marker = false,
                     .dashed = dashed,
                     .ink = ink};
    for (const CurvePoint& p : f.prediction) {
      s.x.push_back(p.step);
      s.y.push_back(value(p));
    }
    return s;
  };
  std::vector<io::PlotSeries> all;
  all.push_back({.name = "log",
                 .x = {steps.begin(), steps.end()},
                 .y = {losses.begin(), losses.end()},
                 .line = true,
                 .marker = false,
                 .dashed = false,
                 .ink = io::kFaintInk});
  const io::Rgb mean = io::series_ink(0), trend = io::series_ink(1), value = io::series_ink(2);
  all.push_back(series("expected", mean, false, [](const CurvePoint& p) { return p.mean; }));
  all.push_back(series("band of the trend", trend, true, [](const CurvePoint& p) { return p.trend_low; }));
  all.push_back(series("", trend, true, [](const CurvePoint& p) { return p.trend_high; }));
  all.push_back(series("band of logged values", value, false, [](const CurvePoint& p) { return p.low; }));
  all.push_back(series("", value, false, [](const CurvePoint& p) { return p.high; }));
  io::PlotOptions options;
  options.title = title;
  options.x_label = "step";
  options.y_label = "loss";
  bool positive = true;
  for (const double loss : losses) positive = positive && loss > 0;
  const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
  options.log_y = positive && *high > 10 * *low;
  io::write_png(file, io::draw_plot(all, options).image());
}

}  // namespace lockstep::forecast
