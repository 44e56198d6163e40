// Rollouts and trainings with their options.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "core/schema/memory.hpp"
#include "lockstep/forecast/documents.hpp"
#include "lockstep/forecast/run.hpp"

namespace lockstep::forecast {
namespace {

/// The batch entries of a model with one row of features are all that row.
void repeat_features(RolloutModel& model, int64_t batch) {
  if (batch == 0 || batch == model.batch()) return;
  if (model.batch() != 1)
    throw schema_of<RolloutRunOptions>().error({OptionError::Kind::invalid, "batch",
                                                fmt::format("{} rows of features", model.batch()),
                                                "the number of rows, or one row", ""});
  const Array row = model.features.packed().reshape({model.inputs()}).to(Storage::f64);
  std::vector<double> all;
  for (int64_t b = 0; b < batch; ++b) all.insert(all.end(), row.as<double>().begin(), row.as<double>().end());
  model.features = Array::of(std::move(all), {batch, model.inputs()}).to(model.storage());
}

RolloutModel model_of(const RolloutRunOptions& o) {
  if (!o.given && o.model.empty()) {
    RandomModelOptions random = o.random;
    random.batch = std::max<int64_t>(o.batch, 1);
    return random_rollout_model(random);
  }
  RolloutModel model = o.given ? *o.given : load_rollout_model(o.model, o.rollout.heads);
  repeat_features(model, o.batch);
  return model;
}

/// The least that random weights, features and the steps' results take, on the host and on any device.
void require_memory(const RolloutRunOptions& o) {
  const OptionList& list = schema_of<RolloutRunOptions>();
  const bool random = !o.given && o.model.empty();
  const auto word = double(size_of(o.random.storage)), d = double(o.random.hidden),
             i = double(o.random.features);
  const double rows = double(std::max<int64_t>(o.batch, 1)), m = double(o.random.members),
               weights = random ? word * 3 * m * d * (d + i) : 0, features = random ? word * rows * i : 0;
  require_host_memory(list, weights, "{members}, {hidden} and {features}");
  require_host_memory(list, weights + features, "{batch} and {features}");
  // A step leaves at least its loss, of each member (one if a file specifies how many) and starting point.
  require_host_memory(list, weights + features + word * rows * double(o.rollout.steps) * (random ? m : 1),
                      "{steps}, {batch} and {members}");
}

}  // namespace

ModelRollout run_rollout(Context& context, const RolloutRunOptions& options) {
  schema_of<RolloutRunOptions>().check(&options);
  require_memory(options);
  ModelRollout out;
  const RolloutModel model = host_stage(out.host_stages, "forecast.model", [&] { return model_of(options); });
  out.run = run_rollout(context, model, options.rollout);
  if (options.plot.empty()) return out;
  out.plot = options.plot;
  host_stage(out.host_stages, "forecast.picture", [&] {
    const Array row = model.features.packed().reshape({model.batch(), model.inputs()}).to(Storage::f64);
    draw_rollout(out.plot, row.at<double>(0, 0), out.run.forecasts.front(),
                 fmt::format("{} members, {} heads", model.members(), name(options.rollout.heads)));
  });
  return out;
}

nlohmann::ordered_json document_of(const ModelRollout& rollout) {
  auto json = document_of(rollout.run);
  if (!rollout.plot.empty()) json["plot"] = rollout.plot.string();
  return json;
}
std::string to_json(const ModelRollout& rollout) { return json_text(document_of(rollout)); }

TrainResult run_train(Context& context, const TrainRunOptions& options, const parallel::Group& group) {
  schema_of<TrainRunOptions>().check(&options);
  TrainOptions train = options.train;
  train.trainer = name_among(choices(options.trainer), options.trainer);
  if (options.trainer == Trainer::predictive) {
    train.policy = predictive_policy(options.predict);
    if (options.predict.control != Control::none)
      train.trainer += fmt::format(", control {}", name(options.predict.control));
  }
  return forecast::train(context, train, group);
}

}  // namespace lockstep::forecast
