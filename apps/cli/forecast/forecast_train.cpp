// `lockstep forecast train`.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/reports/progress.hpp"
#include "forecast_commands.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/train.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct TrainArguments {
  std::string task, model, data, out, checkpoint, trainer = "plain", control = "none", precision = "f32";
  std::string schedule, moments, horizons, directions = "ridge";
  forecast::PredictOptions predict;
  int64_t seeds = 1, seed = 1, steps = 0, batch = 0, evaluate_every = 0;
  std::optional<double> rate, target_loss;
};

/// "10,20,40" as numbers.
std::vector<double> numbers_of(const std::string& text, const char* option) {
  std::vector<double> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    size_t used = 0;
    try {
      numbers.push_back(std::stod(part, &used));
    } catch (const std::exception&) { used = 0; }
    if (part.empty() || used != part.size())
      throw InputError(fmt::format("\"{}\"", text), option, "numbers with commas between them");
  }
  return numbers;
}

forecast::TrainOptions train_options(const TrainArguments& a) {
  forecast::TrainOptions o;
  o.task = a.task;
  o.model = a.model;
  o.data = a.data;
  o.folder = a.out;
  o.checkpoint = a.checkpoint;
  o.seeds = a.seeds;
  o.first_seed = uint64_t(a.seed);
  o.steps = a.steps;
  o.batch = a.batch;
  o.evaluate_every = a.evaluate_every;
  o.rate = a.rate;
  if (!a.schedule.empty()) o.decay = nn::parse_decay(a.schedule);
  o.target_loss = a.target_loss;
  o.precision = a.precision == "f64" ? Storage::f64 : Storage::f32;
  o.trainer = a.trainer;
  if (a.trainer == "predictive") {
    forecast::PredictOptions predict = a.predict;
    predict.control = forecast::parse_control(a.control);
    if (!a.moments.empty()) predict.moments = forecast::parse_moments(a.moments);
    predict.directions = forecast::parse_directions(a.directions);
    if (!a.horizons.empty()) predict.horizons = numbers_of(a.horizons, "--horizons");
    o.policy = forecast::predictive_policy(predict);
    if (a.control != "none") o.trainer += ", control " + a.control;
  }
  return o;
}

/// Each control reads some of the options of jumps.
void check_train_options(const CLI::App& app, const TrainArguments& a) {
  const bool jumps = a.control == "none" || a.control == "zero" || a.control == "random";
  if (a.trainer != "predictive")
    refuse_given(app,
                 {"--control", "--moments", "--horizons", "--spacing", "--warm-up", "--correct",
                  "--directions", "--network-units", "--network-samples", "--rate-factor", "--ema-decay"},
                 "nothing uses it with --trainer plain", "--trainer predictive beside it");
  const std::string why = "nothing uses it with --control " + a.control;
  if (!jumps)
    refuse_given(
        app, {"--moments", "--horizons", "--correct", "--directions", "--network-units", "--network-samples"},
        why, "--control none, zero or random");
  if (a.directions != "mlp")
    refuse_given(app, {"--network-units", "--network-samples"}, "nothing uses it with --directions ridge",
                 "--directions mlp beside it");
  if (!jumps && a.control != "lawa")
    refuse_given(app, {"--spacing"}, why, "--control none, zero, random or lawa");
  if (a.control != "lr") refuse_given(app, {"--rate-factor"}, why, "--control lr");
  if (a.control != "ema") refuse_given(app, {"--ema-decay"}, why, "--control ema");
  if (a.task == "xor") refuse_given(app, {"--data"}, "xor has no data files", "mnist, charlm or FILE.toml");
}

std::string summary(const forecast::TrainResult& r) {
  std::string text = fmt::format("{}, {}: {} parameters, {} examples, {} for validation\n", r.task, r.model,
                                 r.parameters, r.train_examples, r.validation_examples);
  for (const forecast::TrainRun& run : r.runs) {
    text += fmt::format("seed {:<6} steps {:<8} val_loss {:<12.6g}", run.seed, run.steps, run.val_loss);
    if (run.accuracy) text += fmt::format(" accuracy {:<8.4f}", *run.accuracy);
    text += fmt::format(" {:.1f} s", run.seconds);
    if (run.jumps > 0) text += fmt::format(", {} of {} jumps kept", run.accepted, run.jumps);
    if (run.reached) text += ", target reached";
    if (run.resumed_at >= 0) text += fmt::format(", went on from step {}", run.resumed_at);
    text += "\n";
  }
  return text;
}

int run_train(const CommonOptions& common, const TrainArguments& arguments) {
  forecast::TrainOptions options = train_options(arguments);
  Session session(common);
  std::shared_ptr<Progress> bar;
  options.on_progress = [&bar](int64_t done, int64_t total) {
    if (!bar) bar = std::make_shared<Progress>("training", total, "steps");
    bar->set(done);
  };
  const forecast::TrainResult result = forecast::train(session.context(), options);
  bar.reset();
  session.finish(nlohmann::ordered_json::parse(forecast::to_json(result)), summary(result));
  return 0;
}

void add_predict_options(CLI::App& app, TrainArguments& a) {
  forecast::PredictOptions& p = a.predict;
  add_text(app, "--moments", a.moments, "of the optimiser after a jump: keep, decay, reset", "NAME");
  add_text(app, "--horizons", a.horizons, "steps that jumps may reach ahead, 10,20,40,80 by default", "K,K");
  add_integer(app, "--spacing", p.spacing, "steps between snapshots", "P", 1, int64_t(1) << 20);
  add_integer(app, "--warm-up", p.warm_up, "steps before the first snapshot", "N", 0, int64_t(1) << 40);
  add_integer(app, "--correct", p.correct, "steps until a jump is judged", "N", 1, int64_t(1) << 20);
  add_choice(app, "--directions", a.directions, "what foretells the next differences", {"ridge", "mlp"});
  add_integer(app, "--network-units", p.network_units, "of --directions mlp", "N", 1, 64);
  add_integer(app, "--network-samples", p.network_samples, "parameters that the network is fitted to", "N", 8,
              1 << 20);
  add_number(app, "--rate-factor", p.rate_factor, "of --control lr", "F", {.low = 0});
  add_number(app, "--ema-decay", p.ema_decay, "of --control ema", "D", {.low = 0});
}

}  // namespace

void add_forecast_train(CommandList& commands, CLI::App& forecast) {
  Command& train =
      add_command(commands, forecast, "train", "train a network on xor, mnist, charlm or a task of your own");
  auto a = std::make_shared<TrainArguments>();
  CLI::App& app = *train.app;
  add_positional(app, "task", a->task, "xor, mnist, charlm or FILE.toml", true);
  add_file(app, "--data", a->data, "folder of the task's data files");
  add_text(app, "--model", a->model, "mnist: mlp or cnn; charlm: transformer or gru", "NAME");
  add_choice(app, "--trainer", a->trainer, "how steps are made", {"plain", "predictive"});
  add_choice(app, "--control", a->control, "what stands in for predicted jumps",
             {"none", "zero", "random", "lr", "ema", "lawa"});
  add_integer(app, "--seeds", a->seeds, "runs, each of its own seed", "N", 1, 1000);
  add_integer(app, "--seed", a->seed, "of the first run", "S", 0, int64_t(1) << 53);
  add_integer(app, "--steps", a->steps, "instead of the task's", "N", 1, int64_t(1) << 40);
  add_integer(app, "--batch", a->batch, "examples of a step, instead of the task's", "N", 1,
              int64_t(1) << 20);
  add_integer(app, "--evaluate-every", a->evaluate_every, "steps between evaluations, instead of the task's",
              "N", 1, int64_t(1) << 20);
  add_number(app, "--rate", a->rate, "learning rate, instead of the task's", "R", {.low = 0});
  add_text(app, "--schedule", a->schedule,
           "of the learning rate, instead of the task's: constant, cosine, linear", "NAME");
  add_number(app, "--target-loss", a->target_loss, "end a run at the first evaluation at or below", "L");
  add_choice(app, "--precision", a->precision, "of parameters and sums", {"f32", "f64"});
  add_predict_options(app, *a);
  add_output_file(app, "--checkpoint", a->checkpoint,
                  "written at every evaluation; a run that finds it goes on from there", {});
  add_output_folder(app, "--out", a->out, "folder for log.csv, log.jsonl and loss.png");
  require(app, "--out");
  add_common(train, "lockstep forecast train mnist --data data --seeds 3 --out out");
  train.run = [&train, a] {
    check_train_options(*train.app, *a);
    return run_train(train.common, *a);
  };
}

}  // namespace lockstep::cli
