// `lockstep forecast rollout`.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "forecast_commands.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/rollout.hpp"
#include "memory_bound.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct RolloutArguments {
  std::string model, gru = "reset-before", heads = "classic", precision = "f32", weights = "f32", plot;
  int64_t hidden = 256, members = 5, features = 64, seed = 0, steps = 50, batch = 0;
};

/// The batch entries of a file's one row of features are all that row.
void repeat_features(forecast::RolloutModel& model, int64_t batch) {
  if (batch == 0 || batch == model.batch()) return;
  if (model.batch() != 1)
    throw InputError(fmt::format("{} rows of features", model.batch()), "--batch",
                     "the number of rows, or one row");
  const Array row = model.features.packed().reshape({model.inputs()}).to(Storage::f64);
  std::vector<double> all;
  for (int64_t b = 0; b < batch; ++b) all.insert(all.end(), row.as<double>().begin(), row.as<double>().end());
  model.features = Array::of(std::move(all), {batch, model.inputs()}).to(model.storage());
}

forecast::RolloutModel model_of(const RolloutArguments& a, forecast::Heads heads) {
  if (!a.model.empty()) {
    forecast::RolloutModel model = forecast::load_rollout_model(a.model, heads);
    repeat_features(model, a.batch);
    return model;
  }
  return forecast::random_rollout_model({.hidden = a.hidden,
                                         .members = a.members,
                                         .features = a.features,
                                         .batch = std::max<int64_t>(a.batch, 1),
                                         .seed = uint64_t(a.seed),
                                         .storage = a.precision == "f64" ? Storage::f64 : Storage::f32});
}

std::string summary(const forecast::RolloutRun& run) {
  std::string text;
  for (size_t b = 0; b < run.forecasts.size(); ++b) {
    const forecast::Forecast& f = run.forecasts[b];
    if (run.forecasts.size() > 1) text += fmt::format("batch entry {}\n", b);
    text += fmt::format(
        "final loss {:.6g} +- {:.3g} (aleatoric {:.3g}, epistemic {:.3g}), confidence {:.4f}, entropy "
        "{:.4f}\n",
        f.final, f.sigma, f.aleatoric, f.epistemic, f.confidence, f.entropy);
    text += fmt::format("{:>8} {:>12} {:>12} {:>12} {:>12}\n", "member", "final", "variance", "smoothness",
                        "|h|");
    for (size_t m = 0; m < f.members.size(); ++m) {
      const forecast::MemberForecast& one = f.members[m];
      text +=
          fmt::format("{:>8} {:>12.6g} {:>12.4g} {:>12.4f} {:>12.5g}\n", m,
                      one.trajectory.empty() ? f.final : one.trajectory.back(), one.loss_variance,
                      one.trajectory_smoothness, one.hidden_norms.empty() ? 0.0 : one.hidden_norms.back());
    }
  }
  const forecast::RolloutMemory& m = run.memory;
  text +=
      fmt::format("{}, state in {}; memory predicted {} bytes (weights {}, state {}, outputs {}), used {}",
                  run.path, run.state_place, m.total(), m.weights, m.state, m.outputs, run.used_bytes);
  if (m.shared_per_group > 0) text += fmt::format("; {} bytes of shared memory a group", m.shared_per_group);
  if (!run.no_batch.empty()) text += fmt::format("\nno kernel for batches: {}", run.no_batch);
  if (!run.no_cluster.empty()) text += fmt::format("\nportable kernels: {}", run.no_cluster);
  return text + "\n";
}

/// The least that random weights, features and the steps' results take, on the host and on any device.
void require_rollout_memory(const RolloutArguments& a) {
  const double word = a.precision == "f64" ? 8 : 4, d = double(a.hidden), i = double(a.features),
               rows = double(std::max<int64_t>(a.batch, 1));
  const double m = double(a.members), weights = a.model.empty() ? word * 3 * m * d * (d + i) : 0,
               features = a.model.empty() ? word * rows * i : 0;
  require_host_memory(weights, "--members, --hidden and --features");
  require_host_memory(weights + features, "--batch and --features");
  // A step leaves at least its loss, of each member (one, where a file tells how many) and starting point.
  require_host_memory(weights + features + word * rows * double(a.steps) * (a.model.empty() ? m : 1),
                      "--steps, --batch and --members");
}

int rollout(const CommonOptions& common, const RolloutArguments& a) {
  require_rollout_memory(a);
  if (!a.plot.empty() && a.steps == 0)
    throw InputError("a picture of no steps", "--plot", "--steps 1 or more");
  const forecast::Heads heads = a.heads == "two-hot" ? forecast::Heads::two_hot : forecast::Heads::classic;
  Session session(common);
  const forecast::RolloutModel model =
      session.host_stage("forecast.model", [&] { return model_of(a, heads); });
  const forecast::RolloutOptions options{
      .form = a.gru == "reset-after" ? forecast::GruForm::reset_after : forecast::GruForm::reset_before,
      .heads = heads,
      .steps = a.steps,
      .seed = uint64_t(a.seed),
      .weights = a.weights == "bf16"  ? forecast::WeightType::bf16
                 : a.weights == "fp8" ? forecast::WeightType::fp8
                                      : forecast::WeightType::f32};
  const forecast::RolloutRun run = forecast::run_rollout(session.context(), model, options);
  auto json = nlohmann::ordered_json::parse(forecast::to_json(run));
  std::string text = summary(run);
  if (!a.plot.empty()) {
    session.host_stage("forecast.picture", [&] {
      const Array row = model.features.packed().reshape({model.batch(), model.inputs()}).to(Storage::f64);
      forecast::draw_rollout(a.plot, row.at<double>(0, 0), run.forecasts.front(),
                             fmt::format("{} members, {} heads", model.members(), a.heads));
    });
    json["plot"] = a.plot;
    text += a.plot + "\n";
  }
  session.finish(std::move(json), text);
  return 0;
}

}  // namespace

void add_forecast_rollout(CommandList& commands, CLI::App& forecast) {
  Command& command =
      add_command(commands, forecast, "rollout", "forecast losses by an ensemble of recurrent networks");
  auto a = std::make_shared<RolloutArguments>();
  CLI::App& app = *command.app;
  add_positional(
      app, "model", a->model,
      "MODEL.npz with W_z W_r W_h U_z U_r U_h b_z b_r b_h w features [h0]; without it random weights", false);
  add_integer(app, "--hidden", a->hidden, "hidden units of random weights (256)", "H", 1, 8192);
  add_integer(app, "--members", a->members, "members of random weights (5)", "M", 1, 4096);
  add_integer(app, "--features", a->features, "features of random weights (64)", "I", 1, 65536);
  add_integer(app, "--seed", a->seed, "of random weights and sampled states (0)", "S", 0, INT64_MAX);
  add_choice(app, "--precision", a->precision, "type of random weights", {"f32", "f64"});
  add_choice(app, "--weights", a->weights,
             "how U is kept on the device, of models in f32; others are rounded to it",
             {"f32", "bf16", "fp8"});
  add_integer(app, "--steps", a->steps, "steps Y (50)", "Y", 0, 1 << 20);
  add_integer(app, "--batch", a->batch, "starting points that are forecast together", "B", 0, 1 << 20);
  add_choice(app, "--gru", a->gru, "where the reset gate stands; reset-after is PyTorch's and cuDNN's",
             {"reset-before", "reset-after"});
  add_choice(app, "--heads", a->heads, "how loss and uncertainty are read from the state",
             {"classic", "two-hot"});
  add_file(app, "--plot", a->plot,
           "PNG of the members, their mean and bands of one and two sigma (first batch entry)");
  add_common(command, "lockstep forecast rollout --hidden 256 --members 5 --steps 50 --json");
  command.run = [&command, a] {
    if (!a->model.empty()) {
      refuse_given(*command.app, {"--hidden", "--members", "--features", "--precision"},
                   "of random weights, beside " + a->model, "one of both");
      if (a->heads == "classic")
        refuse_given(*command.app, {"--seed"}, "nothing is random", "--heads two-hot, or no model");
    }
    return rollout(command.common, *a);
  };
}

}  // namespace lockstep::cli
