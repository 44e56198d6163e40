#include "forecast/train/log.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.hpp"
#include "io/pictures/plot.hpp"

namespace lockstep::forecast {

namespace {

std::string cell(double v) { return std::isfinite(v) ? fmt::format("{:.9g}", v) : ""; }
std::string cell(const std::optional<double>& v) { return v ? cell(*v) : ""; }

nlohmann::ordered_json row_json(uint64_t seed, const LogRow& row) {
  nlohmann::ordered_json o{{"seed", seed}, {"step", row.step}};
  if (std::isfinite(row.train_loss)) o["train_loss"] = row.train_loss;
  o["rate"] = row.rate;
  if (row.val_loss) o["val_loss"] = *row.val_loss;
  if (row.val_accuracy) o["val_accuracy"] = *row.val_accuracy;
  if (row.val_loss) o["seconds"] = row.seconds;
  o["jumps"] = row.jumps;
  o["accepted"] = row.accepted;
  return o;
}

}  // namespace

void write_logs(const std::filesystem::path& folder, const std::vector<TrainRun>& runs) {
  std::string csv = "seed,step,train_loss,rate,val_loss,val_accuracy,seconds,jumps,accepted\n", lines;
  for (const TrainRun& run : runs)
    for (const LogRow& row : run.log) {
      csv += fmt::format("{},{},{},{:.9g},{},{},{},{},{}\n", run.seed, row.step, cell(row.train_loss),
                         row.rate, cell(row.val_loss), cell(row.val_accuracy),
                         row.val_loss ? fmt::format("{:.3f}", row.seconds) : "", row.jumps, row.accepted);
      lines += row_json(run.seed, row).dump() + "\n";
    }
  write_file(folder / "log.csv", csv);
  write_file(folder / "log.jsonl", lines);
}

std::vector<io::PlotSeries> loss_curves(const TrainResult& result) {
  std::vector<io::PlotSeries> series;
  for (const TrainRun& run : result.runs) {
    const std::string seed = result.runs.size() > 1 ? fmt::format(", seed {}", run.seed) : "";
    io::PlotSeries training{"training" + seed, {}, {}, true, false},
        validation{"validation" + seed, {}, {}, true, true};
    validation.dashed = true;
    training.ink = validation.ink = io::series_ink(series.size() / 2);
    // A running mean, so that the noise of batches does not hide the course.
    constexpr double kKeep = 0.95;
    double mean = std::numeric_limits<double>::quiet_NaN();
    for (const LogRow& row : run.log) {
      if (std::isfinite(row.train_loss)) {
        mean = std::isfinite(mean) ? kKeep * mean + (1 - kKeep) * row.train_loss : row.train_loss;
        training.x.push_back(double(row.step));
        training.y.push_back(mean);
      }
      if (row.val_loss) {
        validation.x.push_back(double(row.step));
        validation.y.push_back(*row.val_loss);
      }
    }
    series.push_back(std::move(training));
    series.push_back(std::move(validation));
  }
  return series;
}

void draw_losses(const std::filesystem::path& file, const TrainResult& result) {
  io::PlotOptions options;
  options.title = fmt::format("{}, {}, {} parameters, {} trainer", result.task, result.model,
                              result.parameters, result.trainer);
  options.x_label = "step";
  options.y_label = "loss";
  options.whole_x = options.log_y = true;
  io::write_drawing(file, io::draw_plot(loss_curves(result), options));
}

}  // namespace lockstep::forecast
