// `lockstep forecast encode`: the states of a logged training as 64 features.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "forecast_commands.hpp"
#include "io/arrays/npy.hpp"
#include "io/series/training_log.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/encoder.hpp"
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
  const io::TrainingLog log = io::read_training_log(command.log);
  const std::string loss = command.column.empty() ? log.loss().name : command.column;
  const forecast::SignalTable table = signals_in(log, loss, command.log);
  const Storage storage = command.precision == "f64" ? Storage::f64 : Storage::f32;
  const forecast::EncodedStates states =
      forecast::encode_states(session.context(), table, command.history, storage);
  const Array& features = command.normalised ? states.normalised : states.features;
  io::NpzArrays arrays;
  arrays.emplace_back("step", Array::of(table.steps));
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (int64_t f = 0; f < forecast::kFeatures; ++f) {
    const std::string name(forecast::feature_table()[size_t(f)].name);
    arrays.emplace_back(name, features.slice(1, f, 1).packed().reshape({table.rows()}));
    names.push_back(name);
  }
  io::write_npz(command.out, arrays);
  std::string text =
      fmt::format("{} states of {} features in {}\n", table.rows(), forecast::kFeatures, command.out);
  for (const std::string& filled : table.filled) text += "not in the log, filled: " + filled + "\n";
  session.finish({{"states", table.rows()},
                  {"features", names},
                  {"filled", table.filled},
                  {"column", loss},
                  {"history", command.history},
                  {"normalised", command.normalised},
                  {"out", command.out}},
                 text);
  return 0;
}

}  // namespace

forecast::SignalTable signals_in(const io::TrainingLog& log, const std::string& loss,
                                 const std::string& where) {
  std::vector<forecast::SignalSeries> columns;
  const auto add = [&](std::string_view name) {
    const io::LogColumn& column = log.column(name);
    columns.push_back({column.name, column.steps, column.values});
  };
  add(loss);
  for (const forecast::SignalInfo& signal : forecast::signal_table()) {
    const io::LogColumn* column = signal.name == loss ? nullptr : log.find(signal.name);
    if (column && (column->flaw || !column->values.empty())) add(signal.name);
  }
  return forecast::signals_of(columns, loss, where);
}

void add_forecast_encode(CommandList& commands, CLI::App& forecast) {
  Command& command =
      add_command(commands, forecast, "encode", "the states of a logged training as 64 features");
  auto options = std::make_shared<EncodeCommand>();
  add_positional(*command.app, "log", options->log, "a log (.csv, .jsonl, tfevents)", true);
  add_output_file(*command.app, "--out", options->out, "where the features go (.npz, an array each)");
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
