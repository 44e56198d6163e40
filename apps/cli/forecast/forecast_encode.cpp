// `lockstep forecast encode`: the states of a logged training as 64 features.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "forecast/run/logged.hpp"
#include "forecast_commands.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct EncodeCommand {
  std::string log, column, out, precision = "f32";
  int64_t history = forecast::kMostHistory;
  bool normalised = false;
};

int run_encode(const CommonOptions& common, const EncodeCommand& command) {
  Session session(common);
  const Storage storage = command.precision == "f64" ? Storage::f64 : Storage::f32;
  const forecast::EncodeRun run =
      forecast::run_encode(session.context(), {command.log, command.column},
                           {command.history, storage, command.normalised}, command.out);
  std::string text =
      fmt::format("{} states of {} features in {}\n", run.states, run.features.size(), command.out);
  for (const std::string& filled : run.filled) text += "not in the log, filled: " + filled + "\n";
  session.finish(nlohmann::ordered_json::parse(forecast::to_json(run)), text);
  return 0;
}

}  // namespace

void add_forecast_encode(CommandList& commands, CLI::App& forecast) {
  Command& command =
      add_command(commands, forecast, "encode", "the states of a logged training as 64 features");
  auto options = std::make_shared<EncodeCommand>();
  add_positional(*command.app, "log", options->log, "a log (.csv, .jsonl, tfevents)", true);
  add_output_file(*command.app, "--out", options->out, "where the features go (.npz, an array each)",
                  {".npz"});
  require(*command.app, "--out");
  add_text(*command.app, "--column", options->column, "the loss (default: loss, train_loss, …)", "NAME");
  add_integer(*command.app, "--history", options->history, "rows that a state looks back on (default 1000)",
              "N", 1, forecast::kMostHistory);
  add_choice(*command.app, "--precision", options->precision, "type of the features (default f32)",
             {"f32", "f64"});
  add_flag(*command.app, "--normalised", options->normalised, "by their running mean and deviation");
  add_common(command, "lockstep forecast encode log.jsonl --out features.npz");
  command.run = [&command, options] { return run_encode(command.common, *options); };
}

}  // namespace lockstep::cli
