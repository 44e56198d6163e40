// Forecasts from logs of trainings: which columns are read, and what the results go to.
#include "forecast/run/logged.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/record/journal.hpp"
#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "core/schema/memory.hpp"
#include "forecast/curve/advice.hpp"
#include "io/arrays/npy.hpp"
#include "lockstep/forecast/documents.hpp"

namespace lockstep::forecast {
namespace {

struct LoggedSignals {
  std::string column;
  SignalTable table;
};

/// The column of the loss: as requested, else by the usual names.
const io::LogColumn& loss_of(const io::TrainingLog& log, const LoggedLoss& wanted) {
  const io::LogColumn& loss = wanted.column.empty() ? log.loss() : log.column(wanted.column);
  journal::found("column", loss.name);
  return loss;
}

/// Columns that the features read, the loss among them; flaws of others do not matter.
LoggedSignals signals_in(const io::TrainingLog& log, const LoggedLoss& wanted) {
  const std::string loss = loss_of(log, wanted).name;
  std::vector<SignalSeries> columns;
  const auto add = [&](std::string_view name) {
    const io::LogColumn& column = log.column(name);
    columns.push_back({column.name, column.steps, column.values});
  };
  add(loss);
  for (const SignalInfo& signal : signal_table()) {
    const io::LogColumn* column = signal.name == loss ? nullptr : log.find(signal.name);
    if (column && (column->flaw || !column->values.empty())) add(signal.name);
  }
  return {loss, signals_of(columns, loss, log.where)};
}

}  // namespace

CurveRun run_curve(const CurveRunOptions& options) {
  schema_of<CurveRunOptions>().check(&options);
  return run_curve(io::read_training_log(options.log.file), options);
}
CurveRun run_curve(const io::TrainingLog& log, const CurveRunOptions& options) {
  const io::LogColumn& loss = loss_of(log, options.log);
  CurveRun run{.column = loss.name, .rows = loss.steps.size(), .picture = options.out};
  run.forecast = host_stage(run.host_stages, "forecast.curve", [&] {
    return forecast_curve(loss.steps, loss.values, options.curve, log.where);
  });
  if (!run.forecast.prediction.empty()) {
    journal::found("horizon", fmt::format("{}", run.forecast.prediction.back().step));
    journal::found("least_gain", fmt::format("{}", least_gain(run.forecast, options.curve)));
  }
  if (!options.out.empty())
    draw_forecast(options.out, loss.steps, loss.values, run.forecast, loss.name + " of " + log.where);
  return run;
}

EncodeRun run_encode(Context& context, const EncodeRunOptions& options) {
  schema_of<EncodeRunOptions>().check(&options);
  const auto [column, table] = signals_in(io::read_training_log(options.log.file), options.log);
  const EncodedStates states = encode_states(context, table, options.history, options.precision);
  const Array& features = options.normalised ? states.normalised : states.features;
  const Array numbers = features.packed().to(Storage::f64);
  for (int64_t k = 0; k < numbers.elements(); ++k)
    if (std::isinf(numbers.as<double>()[size_t(k)]))
      throw InputError(fmt::format("{} at step {:.12g} is {}", feature_table()[size_t(k % kFeatures)].name,
                                   table.steps[size_t(k / kFeatures)], numbers.as<double>()[size_t(k)]),
                       options.log.file.string(),
                       fmt::format("numbers whose features fit into {}", name(options.precision)));
  EncodeRun run{column, table.rows(), {}, table.filled, options.history, options.normalised, options.out};
  io::NpzArrays arrays;
  arrays.emplace_back("step", Array::of(table.steps));
  for (int64_t f = 0; f < kFeatures; ++f) {
    run.features.emplace_back(feature_table()[size_t(f)].name);
    arrays.emplace_back(run.features.back(), features.slice(1, f, 1).packed().reshape({table.rows()}));
  }
  const auto rows = size_t(table.rows());
  std::vector<uint8_t> given(table.given.size());
  for (size_t s = 0; s < size_t(kSignals); ++s)
    for (size_t row = 0; row < rows; ++row) given[row * size_t(kSignals) + s] = table.given[s * rows + row];
  arrays.emplace_back("given", Array::of(std::move(given), {table.rows(), kSignals}));
  io::write_npz(options.out, arrays, io::NpzCompression::stored, {.title = "features of a logged training"});
  return run;
}

LoggedObservations run_observe(Context& context, const ObserveRunOptions& options) {
  schema_of<ObserveRunOptions>().check(&options);
  if (options.model.empty()) {
    // Weights, their gradients and the two moments of Adam.
    const auto d = double(options.random.hidden), i = double(options.random.features);
    require_host_memory(
        schema_of<ObserveRunOptions>(),
        4.0 * double(size_of(options.random.storage)) * 3 * double(options.random.members) * d * (d + i),
        "{members} and {hidden}");
  }
  const RolloutModel start = options.model.empty() ? random_rollout_model(options.random)
                                                   : load_rollout_model(options.model, options.observe.heads);
  return run_observe(context, io::read_training_log(options.log.file), start, options);
}
LoggedObservations run_observe(Context& context, const io::TrainingLog& log, const RolloutModel& start,
                               const ObserveRunOptions& options) {
  const auto [column, table] = signals_in(log, options.log);
  LoggedObservations run{column, table.filled,
                         observe_log(context, table, start, options.observe, options.history), options.out};
  if (!options.out.empty()) save_rollout_model(run.run.model, options.out);
  return run;
}

nlohmann::ordered_json document_of(const CurveRun& run) {
  auto json = document_of(run.forecast);
  json["column"] = run.column;
  json["rows"] = run.rows;
  json["out"] = run.picture.string();
  return json;
}
std::string to_json(const CurveRun& run) { return json_text(document_of(run)); }

nlohmann::ordered_json document_of(const EncodeRun& run) {
  return {{"states", run.states},   {"features", run.features}, {"filled", run.filled},
          {"column", run.column},   {"history", run.history},   {"normalised", run.normalised},
          {"out", run.out.string()}};
}
std::string to_json(const EncodeRun& run) { return json_text(document_of(run)); }

nlohmann::ordered_json document_of(const LoggedObservations& run) {
  auto json = document_of(run.run);
  json["column"] = run.column;
  json["filled"] = run.filled;
  json["out"] = run.out.string();
  return json;
}
std::string to_json(const LoggedObservations& run) { return json_text(document_of(run)); }

}  // namespace lockstep::forecast
