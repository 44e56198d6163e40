// `lockstep forecast sweep`: what early stopping would have saved on runs that were trained to the end.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "forecast/run/logged.hpp"
#include "forecast_commands.hpp"
#include "lockstep/error.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct SweepCommand {
  std::string log;
  int64_t synthetic = 0, runs = 16, seed = 1;
};

int run_sweep(const CommonOptions& common, const SweepCommand& command) {
  if (command.log.empty() == (command.synthetic == 0))
    throw InputError(command.log.empty() ? "neither a log nor --synthetic" : "a log and --synthetic",
                     "forecast sweep", "one of both");
  Session session(common);
  std::vector<std::vector<forecast::SweepRow>> all;
  session.host_stage("forecast.sweep", [&] {
    if (!command.log.empty()) {
      all.push_back(forecast::stop_sweep(forecast::read_sweep(command.log)));
      return;
    }
    for (int64_t k = 0; k < command.synthetic; ++k)
      all.push_back(
          forecast::stop_sweep(forecast::synthetic_sweep(int(command.runs), uint64_t(command.seed + k))));
  });
  const std::vector<forecast::SweepRow> rows = forecast::mean_rows(all);
  std::string text = fmt::format("{:<18} {:>8} {:>9} {:>8} {:>8} {:>10}\n", "policy", "saved", "regret",
                                 "stopped", "rightly", "mean stop");
  for (const forecast::SweepRow& r : rows)
    text += fmt::format("{:<18} {:>6.1f} % {:>7.2f} % {:>8} {:>8} {:>8.1f} %\n", r.policy, 100 * r.saved,
                        100 * r.regret, r.stopped, r.rightly_stopped, 100 * r.mean_stop);
  session.finish(
      {{"policies", nlohmann::ordered_json::parse(forecast::to_json(rows))}, {"sweeps", all.size()}}, text);
  return 0;
}

}  // namespace

void add_forecast_sweep(CommandList& commands, CLI::App& forecast) {
  Command& command =
      add_command(commands, forecast, "sweep", "what stopping runs early would have saved, on finished runs");
  auto options = std::make_shared<SweepCommand>();
  add_positional(*command.app, "log", options->log, "a log with a column of losses for each run", false);
  add_integer(*command.app, "--synthetic", options->synthetic, "synthetic sweeps instead of a log", "N", 0,
              10'000);
  add_integer(*command.app, "--runs", options->runs, "runs of a synthetic sweep (default 16)", "N", 4, 1000);
  add_integer(*command.app, "--seed", options->seed, "of the first synthetic sweep (default 1)", "S", 0,
              1'000'000'000);
  add_common(command, "lockstep forecast sweep sweep.csv");
  command.run = [&command, options] {
    if (!options->log.empty())
      refuse_given(*command.app, {"--runs", "--seed"}, "of synthetic sweeps, beside a log", "one of both");
    return run_sweep(command.common, *options);
  };
}

}  // namespace lockstep::cli
