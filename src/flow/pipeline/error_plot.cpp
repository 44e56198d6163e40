#include "flow/pipeline/error_plot.hpp"

#include "io/pictures/png.hpp"

namespace lockstep::flow {

std::vector<io::PlotSeries> error_curves(const FieldScores& fields, double frame_time) {
  std::vector<io::PlotSeries> curves;
  const auto add = [&](const char* curve, const FieldScore& score, bool dashed) {
    io::PlotSeries s;
    s.name = curve;
    s.marker = false;
    s.dashed = dashed;
    for (size_t k = 0; k < score.l2_by_frame.size(); ++k) {
      s.x.push_back(double(k + 1) * frame_time);
      s.y.push_back(score.l2_by_frame[k]);
    }
    curves.push_back(std::move(s));
  };
  add("surrogate", fields.surrogate, false);
  add("codec", fields.codec, false);
  add("persistence", fields.persistence, true);
  add("climatology", fields.climatology, true);
  if (!fields.linear.l2_by_frame.empty()) add("linear in time", fields.linear, true);
  return curves;
}

std::filesystem::path draw_errors(const std::filesystem::path& folder, const FieldScores& fields,
                                  double frame_time) {
  io::PlotOptions options;
  options.title = "error of held-out fields";
  options.x_label = "time after the last training frame";
  options.y_label = "relative L2";
  const auto file = folder / "errors.png";
  io::write_png(file, io::draw_plot(error_curves(fields, frame_time), options).image());
  return file;
}

}  // namespace lockstep::flow
