// The fan of a rollout.
#include <algorithm>
#include <cmath>

#include "io/pictures/plot.hpp"
#include "io/pictures/png.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/rollout.hpp"

namespace lockstep::forecast {

void draw_rollout(const std::filesystem::path& file, double loss, const Forecast& f,
                  const std::string& title) {
  if (f.trajectory.empty()) throw InputError("a rollout of no steps", file.string(), "one step or more");
  const auto series = [&](std::string label, io::Rgb ink, bool dashed, const std::vector<double>& after) {
    io::PlotSeries s{.name = std::move(label),
                     .x = {},
                     .y = {loss},
                     .line = true,
                     .marker = false,
                     .dashed = dashed,
                     .ink = ink};
    s.y.insert(s.y.end(), after.begin(), after.end());
    for (size_t t = 0; t < s.y.size(); ++t) s.x.push_back(double(t));
    return s;
  };
  std::vector<io::PlotSeries> all;
  for (const MemberForecast& m : f.members)
    all.push_back(series(all.empty() ? "members" : "", io::kFaintInk, false, m.trajectory));
  for (const double side : {1.0, -1.0, 2.0, -2.0}) {
    std::vector<double> edge = f.trajectory;
    for (size_t t = 0; t < edge.size(); ++t) edge[t] += side * f.sigmas[t];
    const bool far = std::abs(side) > 1;
    all.push_back(series(side < 0 ? ""
                         : far    ? "2 sigma"
                                  : "1 sigma",
                         io::series_ink(far ? 2 : 1), far, edge));
  }
  all.push_back(series("mean", io::series_ink(0), false, f.trajectory));
  io::PlotOptions options;
  options.title = title;
  options.x_label = "steps ahead";
  options.y_label = "loss";
  options.whole_x = true;
  io::write_png(file, io::draw_plot(all, options).image());
}

}  // namespace lockstep::forecast
