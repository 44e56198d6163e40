// A log's rows as observations.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/documents.hpp"
#include "lockstep/forecast/observe.hpp"

namespace lockstep::forecast {

namespace {

/// Rows of features: normalised but for the loss.
std::vector<std::vector<double>> feature_rows(const Device& device, const SignalTable& log, int64_t history,
                                              Storage storage) {
  const EncodedStates states = encode_states(device, log, history, storage);
  const Array normalised = states.normalised.to(Storage::f64), raw = states.features.to(Storage::f64);
  std::vector<std::vector<double>> rows;
  for (int64_t t = 0; t < log.rows(); ++t) {
    const std::span<const double> row = normalised.as<double>().subspan(size_t(t * kFeatures), kFeatures);
    rows.emplace_back(row.begin(), row.end());
    rows.back()[0] = raw.as<double>()[size_t(t * kFeatures)];
  }
  return rows;
}

/// Errors over the later half; `loss` has the row before the first prediction too.
void measure(ObserveRun& run, const double* loss) {
  const size_t rows = run.losses.size(), later = (rows + 1) / 2;
  for (size_t t = later; t < rows; ++t)
    run.logarithmic = run.logarithmic && loss[t] > 0 && loss[t + 1] > 0 && run.predicted[t] > 0;
  const auto scale = [&](double v) {
    return run.logarithmic ? std::log(v) : std::copysign(std::log1p(std::abs(v)), v);
  };
  const double count = double(std::max<size_t>(rows - later, 1));
  for (size_t t = later; t < rows; ++t) {
    run.error += std::abs(scale(run.predicted[t]) - scale(loss[t + 1])) / count;
    run.last_value_error += std::abs(scale(loss[t]) - scale(loss[t + 1])) / count;
  }
}

}  // namespace

ObserveRun observe_log(Context& context, const SignalTable& log, const RolloutModel& start,
                       const ObserveOptions& options, int64_t history) {
  if (log.rows() < 2) throw InputError(fmt::format("{} rows", log.rows()), "forecast observe", "two or more");
  if (start.inputs() != kFeatures)
    throw InputError(fmt::format("a model of {} features", start.inputs()), "forecast observe",
                     fmt::format("{}, as the state encoder has", kFeatures));
  const double* const loss = log.values.data() + int64_t(Signal::loss) * log.rows();
  const bool by_logarithm = options.heads == Heads::classic && options.objective == Objective::logarithmic;
  for (int64_t t = 0; t < log.rows() && by_logarithm; ++t)
    if (!(loss[t] > 0) || (start.storage() == Storage::f32 && !(float(loss[t]) > 0)))
      throw InputError(
          fmt::format("the loss of row {}, step {:.12g}, is {}", t + 1, log.steps[size_t(t)], loss[t]),
          "forecast observe", "positive numbers, --objective squared or --heads two-hot");
  return context.stage("forecast.observe", [&](const Device& device) {
    ObserveRun run;
    OnlineEnsemble ensemble(device, start, options);
    const auto rows = feature_rows(device, log, history, start.storage());
    for (int64_t t = 0; t + 1 < log.rows(); ++t) {
      run.steps.push_back(log.steps[size_t(t + 1)]);
      run.losses.push_back(loss[t + 1]);
      const Observation seen = ensemble.observe(rows[size_t(t)], loss[t + 1]);
      if (!std::isfinite(seen.predicted))
        throw InputError(
            fmt::format("the prediction of step {:.12g} is {}", log.steps[size_t(t + 1)], seen.predicted),
            "forecast observe", "losses and a --rate with which the weights remain finite");
      run.predicted.push_back(seen.predicted);
      run.divergence = seen.divergence;
    }
    measure(run, loss);
    run.model = ensemble.model(rows.back());
    check(run.model, options.form, options.heads, "forecast observe, the model after the last row");
    return run;
  });
}

nlohmann::ordered_json document_of(const ObserveRun& run) {
  nlohmann::ordered_json json;
  json["observations"] = run.losses.size();
  json["error"] = run.error;
  json["error_of"] = run.logarithmic ? "log" : "symlog";
  json["last_value_error"] = run.last_value_error;
  json["divergence"] = run.divergence;
  json["members"] = run.model.members();
  json["hidden"] = run.model.hidden();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t t = 0; t < run.losses.size(); ++t)
    rows.push_back({{"step", run.steps[t]}, {"loss", run.losses[t]}, {"predicted", run.predicted[t]}});
  json["predictions"] = std::move(rows);
  return json;
}
std::string to_json(const ObserveRun& run) { return json_text(document_of(run)); }

}  // namespace lockstep::forecast
