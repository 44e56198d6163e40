// `lockstep forecast curve`: where the loss of a running training will be.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "forecast/run/logged.hpp"
#include "forecast_commands.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct CurveCommand {
  std::string log, column, out;
  int64_t points = 50;
  double coverage = 0.8;
  std::optional<double> horizon, target, least_gain;
};

std::string curve_summary(const forecast::CurveForecast& f) {
  std::string text = fmt::format("{:>12} {:>12} {:>12} {:>12}\n", "step", "loss", "low", "high");
  const size_t stride = (f.prediction.size() + 9) / 10;
  for (size_t k = f.prediction.size(); k-- > 0;) {
    if ((f.prediction.size() - 1 - k) % stride != 0) continue;
    const forecast::CurvePoint& p = f.prediction[k];
    text.insert(text.find('\n') + 1,
                fmt::format("{:>12.10g} {:>12.5g} {:>12.5g} {:>12.5g}\n", p.step, p.mean, p.low, p.high));
  }
  for (const forecast::BacktestRow& row : f.backtest.rows)
    text +=
        fmt::format("on the run's own past, {}: mean error {:.2f} %\n", row.predictor, 100 * row.mean_error);
  return text + f.advice.text + "\n";
}

int run_curve(const CommonOptions& common, const CurveCommand& command) {
  Session session(common);
  forecast::CurveOptions options{.points = int(command.points),
                                 .coverage = command.coverage,
                                 .target = command.target,
                                 .least_gain = command.least_gain};
  if (command.horizon) options.horizon = *command.horizon;
  const forecast::CurveRun run = forecast::run_curve({command.log, command.column}, options, command.out);
  for (const StageRecord& stage : run.host_stages) session.note(stage);
  session.finish(nlohmann::ordered_json::parse(forecast::to_json(run)), curve_summary(run.forecast));
  return 0;
}

}  // namespace

void add_forecast_curve(CommandList& commands, CLI::App& forecast) {
  Command& command = add_command(commands, forecast, "curve", "where the loss of a running training will be");
  auto options = std::make_shared<CurveCommand>();
  add_positional(*command.app, "log", options->log, "a log (.csv, .jsonl, tfevents)", true);
  add_number(*command.app, "--horizon", options->horizon,
             "last step of the prediction (default: twice the log's last)", "STEP", {0, 1e300, true});
  add_text(*command.app, "--column", options->column, "the quantity (default: loss, train_loss, …)", "NAME");
  add_integer(*command.app, "--points", options->points, "steps of the prediction (default 50)", "N", 1,
              100'000);
  add_number(*command.app, "--coverage", options->coverage, "share of later values in the band (default 0.8)",
             "SHARE", {0.01, 0.99});
  add_number(*command.app, "--target", options->target, "a loss to be reached: advice says when", "LOSS");
  add_number(
      *command.app, "--least-gain", options->least_gain,
      "stop where the trend falls by less than this a step (default: 1 % of the loss up to the horizon)",
      "GAIN", {0, 1e300});
  add_output_file(*command.app, "--out", options->out, "where the plot goes (.png)", {".png"});
  add_common(command, "lockstep forecast curve log.csv --horizon 20000 --target 0.3 --out curve.png");
  command.run = [&command, options] { return run_curve(command.common, *options); };
}

}  // namespace lockstep::cli
