// Forecasts of trainings on a page: rollouts of given or random weights, learning curves, and ensembles that observe a log.
#include "arrays.hpp"
#include "forecast/rollout/weights/named_arrays.hpp"
#include "forecast/run/logged.hpp"
#include "lockstep/forecast/documents.hpp"
#include "options.hpp"
#include "page_context.hpp"

namespace lockstep::web {

namespace {

io::TrainingLog log_of(const Json& request) {
  const std::span<const std::byte> bytes = arrays().at(member(request, "log")).raw();
  return io::parse_training_log({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                text(request, "name"));
}

/// The weights of a request, if it has some.
std::optional<forecast::RolloutModel> weights_of(const Json& request, const char* call) {
  const auto arrays = named_arrays(request, "model");
  return arrays.empty() ? std::nullopt : std::optional(forecast::model_of(arrays, call));
}

Json rollout(const Json& request) {
  constexpr auto kCall = "lockstep.forecast.rollout";
  forecast::RolloutRunOptions options;
  options.given = weights_of(request, kCall);
  PageContext context(request);
  Json answer = with_options<forecast::RolloutRunOptions>(
      request, kCall,
      [&](const forecast::RolloutRunOptions& o) {
        if (o.given) check(*o.given, o.rollout.form, o.rollout.heads, kCall);
        return document_of(run_rollout(*context, o));
      },
      options);
  answer.update(context.status());
  return answer;
}

Json curve(const Json& request) {
  const io::TrainingLog log = log_of(request);
  return with_options<forecast::CurveRunOptions>(request, "lockstep.forecast.curve", [&](const auto& o) {
    Json answer = document_of(run_curve(log, o));
    answer.erase("out");
    return answer;
  });
}

Json observe(const Json& request) {
  constexpr auto kCall = "lockstep.forecast.observe";
  const io::TrainingLog log = log_of(request);
  const auto given = weights_of(request, kCall);
  forecast::ObserveRunOptions options;
  if (given) options.model = "model";  // rejects options of random weights
  PageContext context(request);
  Json answer = with_options<forecast::ObserveRunOptions>(
      request, kCall,
      [&](const forecast::ObserveRunOptions& o) {
        if (given) check(*given, o.observe.form, o.observe.heads, kCall);
        const auto found =
            run_observe(*context, log, given ? *given : forecast::random_rollout_model(o.random), o);
        Json all = document_of(found);
        all.erase("out");
        all["model"] = handles_of(forecast::arrays_of(found.run.model));
        return all;
      },
      options);
  answer.update(context.status());
  return answer;
}

}  // namespace

void add_forecast_calls(Calls& calls) {
  calls["forecast_rollout"] = rollout;
  calls["forecast_curve"] = curve;
  calls["forecast_observe"] = observe;
}

}  // namespace lockstep::web
