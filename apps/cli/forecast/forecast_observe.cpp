// `lockstep forecast observe`: an ensemble learns a logged training row by row.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "forecast/run/logged.hpp"
#include "forecast_commands.hpp"
#include "lockstep/error.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct ObserveArguments {
  std::string log, column, out, model, precision = "f32", gru = "reset-before", heads = "classic",
                                       objective = "logarithmic";
  int64_t history = forecast::kMostHistory, hidden = 128, members = 5, seed = 0, window = 3;
  double rate = 1e-3, decay = 1, clip_norm = 5, free_nats = 1;
  bool posterior = false;
};

forecast::Heads heads_of(const ObserveArguments& a) {
  return a.heads == "two-hot" ? forecast::Heads::two_hot : forecast::Heads::classic;
}

forecast::ObserveOptions options_of(const ObserveArguments& a) {
  using forecast::GruForm, forecast::Objective;
  if (a.heads == "two-hot" && a.objective == "squared")
    throw InputError("squared, beside --heads two-hot", "--objective", "one of both");
  return {.form = a.gru == "reset-after" ? GruForm::reset_after : GruForm::reset_before,
          .heads = heads_of(a),
          .objective = a.objective == "squared" ? Objective::squared : Objective::logarithmic,
          .seed = uint64_t(a.seed),
          .posterior = {.on = a.posterior, .free_nats = a.free_nats},
          .window = a.window,
          .decay = a.decay,
          .optimizer = {.schedule = {.rate = a.rate}, .clip_norm = a.clip_norm}};
}

forecast::RolloutModel start_of(const ObserveArguments& a) {
  if (!a.model.empty()) return forecast::load_rollout_model(a.model, heads_of(a));
  return forecast::random_rollout_model({.hidden = a.hidden,
                                         .members = a.members,
                                         .features = forecast::kFeatures,
                                         .seed = uint64_t(a.seed),
                                         .storage = a.precision == "f64" ? Storage::f64 : Storage::f32});
}

int observe(const CommonOptions& common, const ObserveArguments& a) {
  Session session(common);
  const forecast::LoggedObservations logged = forecast::run_observe(
      session.context(), {a.log, a.column}, start_of(a), options_of(a), a.history, a.out);
  const forecast::ObserveRun& run = logged.run;
  std::string text = fmt::format(
      "{} observations; mean |{}| over the later half {:.4g}, of the row before {:.4g}\n"
      "model with states in {}; go on: lockstep forecast rollout {} --gru {} --heads {}\n",
      run.losses.size(), run.logarithmic ? "log(predicted / loss)" : "symlog(predicted) - symlog(loss)",
      run.error, run.last_value_error, a.out, a.out, a.gru, a.heads);
  for (const std::string& filled : logged.filled) text += "not in the log, filled: " + filled + "\n";
  session.finish(nlohmann::ordered_json::parse(forecast::to_json(logged)), text);
  return 0;
}

}  // namespace

void add_forecast_observe(CommandList& commands, CLI::App& forecast) {
  Command& command =
      add_command(commands, forecast, "observe", "teach an ensemble a logged training, row by row");
  auto a = std::make_shared<ObserveArguments>();
  CLI::App& app = *command.app;
  add_positional(app, "log", a->log, "a log (.csv, .jsonl, tfevents)", true);
  add_output_file(app, "--out", a->out, "where weights and states go (.npz), for `forecast rollout`",
                  {".npz"});
  require(app, "--out");
  add_file(app, "--model", a->model, "weights to begin with (.npz) instead of random ones");
  add_integer(app, "--hidden", a->hidden, "hidden units of random weights (128)", "H", 1, 8192);
  add_integer(app, "--members", a->members, "members of random weights (5)", "M", 1, 4096);
  add_integer(app, "--seed", a->seed, "of random weights and of the two-hot heads' draws (0)", "S", 0,
              INT64_MAX);
  add_choice(app, "--precision", a->precision, "type of random weights (f32)", {"f32", "f64"});
  add_choice(app, "--gru", a->gru, "where the reset gate stands", {"reset-before", "reset-after"});
  add_choice(app, "--heads", a->heads,
             "classic: published; two-hot: sampled states, a distribution over bins", {"classic", "two-hot"});
  add_flag(app, "--posterior", a->posterior,
           "two-hot heads learn from states drawn with the loss that came, and a KL term");
  add_number(app, "--free-nats", a->free_nats, "of the KL term, which counts above them (1)", "N",
             {.low = 0});
  add_choice(app, "--objective", a->objective,
             "logarithmic: squares of log(predicted / loss); squared: of predicted - loss",
             {"logarithmic", "squared"});
  add_integer(app, "--window", a->window, "steps that errors are followed back (3)", "K", 1, 1024);
  add_number(app, "--decay", a->decay, "weight of each step further back (1)", "D", {.low = 0, .high = 1});
  add_number(app, "--rate", a->rate, "Adam's learning rate (0.001)", "R", {.low = 0, .low_open = true});
  add_number(app, "--clip-norm", a->clip_norm, "gradients beyond this norm are scaled down; 0: none (5)", "N",
             {.low = 0});
  add_text(app, "--column", a->column, "the loss (default: loss, train_loss, …)", "NAME");
  add_integer(app, "--history", a->history, "rows that a state looks back on (1000)", "N", 1,
              forecast::kMostHistory);
  add_common(command, "lockstep forecast observe log.csv --out model.npz");
  command.run = [&command, a] {
    if (a->posterior && a->heads != "two-hot")
      throw InputError("a posterior of classic heads", "--posterior", "--heads two-hot");
    if (!a->posterior) refuse_given(*command.app, {"--free-nats"}, "without a KL term", "--posterior");
    if (!a->model.empty()) {
      refuse_given(*command.app, {"--hidden", "--members", "--precision"},
                   "of random weights, beside --model", "one of both");
      if (a->heads != "two-hot")
        refuse_given(*command.app, {"--seed"}, "of random weights, beside --model", "one of both");
    }
    return observe(command.common, *a);
  };
}

}  // namespace lockstep::cli
