// `lockstep forecast train`.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/progress.hpp"
#include "forecast_commands.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/train.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct TrainArguments {
  std::string task, model, data, out, checkpoint, trainer = "plain", control = "none", precision = "f32";
  int64_t seeds = 1, seed = 1, steps = 0, batch = 0, evaluate_every = 0;
  std::optional<double> rate, target_loss;
};

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
  o.target_loss = a.target_loss;
  o.precision = a.precision == "f64" ? Storage::f64 : Storage::f32;
  o.trainer = a.trainer;
  if (a.trainer == "predictive") {
    forecast::PredictOptions predict;
    predict.control = forecast::parse_control(a.control == "lr" ? "rate" : a.control);
    predict.seed = o.first_seed;
    o.policy = forecast::predictive_policy(predict);
    if (a.control != "none") o.trainer += ", control " + a.control;
  } else if (a.control != "none") {
    throw InputError("--control " + a.control, "forecast train", "--trainer predictive beside it");
  }
  return o;
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
  add_number(app, "--target-loss", a->target_loss, "end a run at the first evaluation at or below", "L");
  add_choice(app, "--precision", a->precision, "of parameters and sums", {"f32", "f64"});
  add_file(app, "--checkpoint", a->checkpoint,
           "written at every evaluation; a run that finds it goes on from there");
  add_file(app, "--out", a->out, "folder for log.csv, log.jsonl and loss.png");
  require(app, "--out");
  add_common(train, "lockstep forecast train mnist --data data --seeds 3 --out out");
  train.run = [&train, a] { return run_train(train.common, *a); };
}

}  // namespace lockstep::cli
