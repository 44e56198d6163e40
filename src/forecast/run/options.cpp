// Names and options of forecast's commands.
#include <array>

#include "lockstep/forecast/run.hpp"

namespace lockstep::forecast {

std::span<const Choice<Trainer>> choices(Trainer) {
  static constexpr auto kAll =
      std::to_array<Choice<Trainer>>({{"plain", Trainer::plain}, {"predictive", Trainer::predictive}});
  return kAll;
}

namespace {

using Use = Option::Use;
constexpr double kMostCount = 1 << 20;  // of a batch, or of steps between evaluations

std::vector<Choice<Storage>> precisions() { return {{"f32", Storage::f32}, {"f64", Storage::f64}}; }

bool has_weights(const ObserveRunOptions& o) { return !o.model.empty(); }
bool has_weights(const RolloutRunOptions& o) { return !o.model.empty() || o.given; }
Heads heads_of(const ObserveRunOptions& o) { return o.observe.heads; }
Heads heads_of(const RolloutRunOptions& o) { return o.rollout.heads; }

/// Rejects options of random weights when weights are given.
template <class Run>
void add_weight_rules(Schema<Run>& s, std::initializer_list<const char*> options) {
  for (const char* option : options)
    s.useless(
        option, [](const Run& o) { return has_weights(o); }, "only for random weights, not with {model}",
        "one of the two");
  s.useless(
      "seed", [](const Run& o) { return has_weights(o) && heads_of(o) == Heads::classic; },
      "nothing is random", "{heads} two-hot, or no {model}");
}

bool jumps(const TrainRunOptions& o) {
  const Control c = o.predict.control;
  return c == Control::none || c == Control::zero || c == Control::random;
}
constexpr auto kUnusedByControl = "it has no effect with this {control}";

/// Each trainer and control reads some of the options of jumps.
void add_trainer_rules(Schema<TrainRunOptions>& s) {
  for (const Option& option : schema_of<PredictOptions>().options())
    s.useless(
        option.name, [](const TrainRunOptions& o) { return o.trainer != Trainer::predictive; },
        "it has no effect with {trainer} plain", "{trainer} predictive with it");
  for (const char* option :
       {"moments", "moment_decay", "horizons", "correct", "directions", "network_units", "network_samples",
        "order", "ridge", "max_growth", "exploration", "growth_of_doubt"})
    s.useless(
        option, [](const TrainRunOptions& o) { return !jumps(o); }, kUnusedByControl,
        "{control} none, zero or random");
  for (const char* option : {"network_units", "network_samples"})
    s.useless(
        option, [](const TrainRunOptions& o) { return o.predict.directions != Directions::mlp; },
        "it has no effect with {directions} ridge", "{directions} mlp with it");
  s.useless(
      "moment_decay", [](const TrainRunOptions& o) { return o.predict.moments != Moments::decay; },
      "it has no effect with this {moments}", "{moments} decay");
  for (const char* option : {"spacing", "snapshots"})
    s.useless(
        option, [](const TrainRunOptions& o) { return !jumps(o) && o.predict.control != Control::lawa; },
        kUnusedByControl, "{control} none, zero, random or lawa");
  s.useless(
      "rate_factor", [](const TrainRunOptions& o) { return o.predict.control != Control::rate; },
      kUnusedByControl, "{control} lr");
  s.useless(
      "ema_decay", [](const TrainRunOptions& o) { return o.predict.control != Control::ema; },
      kUnusedByControl, "{control} ema");
  s.useless(
      "control_seed", [](const TrainRunOptions& o) { return o.predict.control != Control::random; },
      kUnusedByControl, "{control} random");
}

}  // namespace

void describe(Schema<LoggedLoss>& s) {
  s.of("forecast::LoggedLoss");
  s.option("log", &LoggedLoss::file, "a log (.csv, .jsonl, tfevents)")
      .member("file")
      .file(Use::input)
      .positional()
      .required();
  s.option("column", &LoggedLoss::column, "column of the loss").or_else("loss, train_loss, …").shown("NAME");
}

void describe(Schema<CurveOptions>& s) {
  s.of("forecast::CurveOptions");
  s.option("horizon", &CurveOptions::horizon, "last step of the prediction")
      .above(0)
      .at_most(1e300)
      .off(0)
      .or_else("twice the log's last")
      .shown("STEP");
  s.option("points", &CurveOptions::points, "steps of the prediction").at_least(1).at_most(100'000);
  s.option("coverage", &CurveOptions::coverage, "share of later values inside the band")
      .at_least(0.01)
      .at_most(0.99)
      .shown("SHARE");
  s.option("target", &CurveOptions::target, "target loss; the advice says when it is reached").shown("LOSS");
  s.option("least_gain", &CurveOptions::least_gain,
           "stop when the trend decreases by less than this per step")
      .at_least(0)
      .at_most(1e300)
      .or_else("1 % of the loss up to the horizon")
      .shown("GAIN");
}

void describe(Schema<CurveRunOptions>& s) {
  s.of("forecast::CurveRunOptions");
  s.include(&CurveRunOptions::log);
  s.include(&CurveRunOptions::curve);
  s.option("out", &CurveRunOptions::out, "file for the plot (.png)")
      .file(Use::output_file, {".png"})
      .shown("FILE")
      .effect(Effect::display);
}

void describe(Schema<EncodeRunOptions>& s) {
  s.of("forecast::EncodeRunOptions");
  s.include(&EncodeRunOptions::log);
  s.option("out", &EncodeRunOptions::out, "file for the features (.npz, one array each)")
      .file(Use::output_file, {".npz"})
      .shown("FILE")
      .required()
      .effect(Effect::display);
  s.option("history", &EncodeRunOptions::history, "rows of history in a state")
      .at_least(1)
      .at_most(kMostHistory);
  s.option("precision", &EncodeRunOptions::precision, "type of the features", precisions());
  s.option("normalised", &EncodeRunOptions::normalised, "normalise by the running mean and deviation");
}

void describe(Schema<RandomModelOptions>& s) {
  s.of("forecast::RandomModelOptions");
  s.option("hidden", &RandomModelOptions::hidden, "hidden units of random weights")
      .at_least(1)
      .at_most(8192)
      .shown("H");
  s.option("members", &RandomModelOptions::members, "members of random weights")
      .at_least(1)
      .at_most(4096)
      .shown("M");
  s.option("features", &RandomModelOptions::features, "features of random weights")
      .at_least(1)
      .at_most(65536)
      .shown("I");
  s.option("precision", &RandomModelOptions::storage, "type of random weights", precisions())
      .member("storage");
}

void describe(Schema<PosteriorTerm>& s) {
  s.of("forecast::PosteriorTerm");
  s.option("posterior", &PosteriorTerm::on,
           "two-hot heads learn from states sampled with the observed loss, and a KL term")
      .member("on");
  s.option("free_nats", &PosteriorTerm::free_nats, "threshold of the KL term: only the excess counts")
      .at_least(0)
      .shown("N");
  s.useless("free_nats", [](const PosteriorTerm& p) { return !p.on; }, "without a KL term", "{posterior}");
}

void describe(Schema<ObserveOptions>& s) {
  s.of("forecast::ObserveOptions");
  s.option("seed", &ObserveOptions::seed, "seed of random weights and of the samples of two-hot heads")
      .shown("S");
  s.option("gru", &ObserveOptions::form, "position of the reset gate").member("form");
  s.option("heads", &ObserveOptions::heads,
           "classic: published; two-hot: sampled states, a distribution over bins");
  s.include(&ObserveOptions::posterior);
  s.option("objective", &ObserveOptions::objective,
           "logarithmic: squares of log(predicted / loss); squared: of predicted - loss");
  s.option("window", &ObserveOptions::window, "steps of backpropagation through time")
      .at_least(1)
      .at_most(1024)
      .shown("K");
  s.option("decay", &ObserveOptions::decay, "factor of the weight for each earlier step")
      .at_least(0)
      .at_most(1)
      .shown("D");
  s.include(&ObserveOptions::optimizer);
  s.useless(
      "posterior", [](const ObserveOptions& o) { return o.heads != Heads::two_hot; },
      "a posterior of classic heads", "{heads} two-hot");
  s.useless(
      "objective",
      [](const ObserveOptions& o) { return o.heads == Heads::two_hot && o.objective == Objective::squared; },
      "squared, with {heads} two-hot", "one of the two");
}

void describe(Schema<ObserveRunOptions>& s) {
  s.of("forecast::ObserveRunOptions");
  s.include(&ObserveRunOptions::log);
  s.option("out", &ObserveRunOptions::out, "file for weights and states (.npz), for `forecast rollout`")
      .file(Use::output_file, {".npz"})
      .shown("FILE")
      .required()
      .effect(Effect::display);
  s.option("model", &ObserveRunOptions::model, "initial weights (.npz) instead of random ones")
      .file(Use::input)
      .shown("FILE");
  s.include(&ObserveRunOptions::random, {"features"});
  s.include(&ObserveRunOptions::observe);
  s.option("history", &ObserveRunOptions::history, "rows of history in a state")
      .at_least(1)
      .at_most(kMostHistory);
  add_weight_rules(s, {"hidden", "members", "precision"});
  s.derive([](ObserveRunOptions& o, const Given&) { o.random.seed = o.observe.seed; });
}

void describe(Schema<RolloutOptions>& s) {
  s.of("forecast::RolloutOptions");
  s.option("seed", &RolloutOptions::seed, "seed of random weights and sampled states").shown("S");
  s.option("weights", &RolloutOptions::weights,
           "type in which U is stored on the device, for models in f32; U is rounded to it");
  s.option("steps", &RolloutOptions::steps, "steps to forecast")
      .at_least(0)
      .at_most(kMostRolloutSteps)
      .shown("Y");
  s.option("gru", &RolloutOptions::form, "position of the reset gate; PyTorch and cuDNN use reset-after")
      .member("form");
  s.option("heads", &RolloutOptions::heads, "how loss and uncertainty are read from the state");
}

void describe(Schema<RolloutRunOptions>& s) {
  s.of("forecast::RolloutRunOptions");
  s.option("model", &RolloutRunOptions::model,
           "MODEL.npz with W_z W_r W_h U_z U_r U_h b_z b_r b_h w features [h0]; without it random weights")
      .file(Use::input)
      .positional();
  s.include(&RolloutRunOptions::random);
  s.include(&RolloutRunOptions::rollout);
  s.option("batch", &RolloutRunOptions::batch, "starting points that are forecast together; 0: the model's")
      .at_least(0)
      .at_most(kMostCount)
      .shown("B");
  s.option("plot", &RolloutRunOptions::plot,
           "PNG of the members, their mean and bands of one and two sigma (first batch entry)")
      .file(Use::output_file, {".png"})
      .shown("FILE")
      .effect(Effect::display);
  add_weight_rules(s, {"hidden", "members", "features", "precision"});
  s.useless(
      "plot", [](const RolloutRunOptions& o) { return o.rollout.steps == 0; }, "a picture of no steps",
      "{steps} of 1 or more");
  s.derive([](RolloutRunOptions& o, const Given&) { o.random.seed = o.rollout.seed; });
}

void describe(Schema<SweepRunOptions>& s) {
  s.of("forecast::SweepRunOptions");
  s.option("log", &SweepRunOptions::log, "a log with one column of losses per run")
      .file(Use::input)
      .positional();
  s.option("synthetic", &SweepRunOptions::synthetic, "synthetic sweeps instead of a log")
      .at_least(0)
      .at_most(10'000);
  s.option("runs", &SweepRunOptions::runs, "runs of a synthetic sweep").at_least(4).at_most(1000);
  s.option("seed", &SweepRunOptions::seed, "seed of the first synthetic sweep").at_most(1e9).shown("S");
  s.include(&SweepRunOptions::sweep);
  s.option("checkpoint", &SweepRunOptions::checkpoint, "finished fits; a run resumes from an existing file")
      .file(Use::output_file, {".npz"})
      .shown("FILE")
      .effect(Effect::display);
  for (const char* option : {"runs", "seed"})
    s.useless(
        option, [](const SweepRunOptions& o) { return !o.log.empty(); },
        "only for synthetic sweeps, not with a log", "one of the two");
}

void describe(Schema<TrainOptions>& s) {
  s.of("forecast::TrainOptions");
  s.option("task", &TrainOptions::task, "xor, mnist, charlm or FILE.toml")
      .file(Use::input)
      .positional()
      .required();
  s.option("data", &TrainOptions::data, "folder of the task's data files").file(Use::input).shown("DIR");
  s.option("model", &TrainOptions::model, "mnist: mlp or cnn; charlm: transformer or gru").shown("NAME");
  s.option("seeds", &TrainOptions::seeds, "runs, each with its own seed").at_least(1).at_most(1000);
  s.option("seed", &TrainOptions::first_seed, "seed of the first run")
      .member("first_seed")
      .at_most(0x1p53)
      .shown("S");
  s.option("steps", &TrainOptions::steps, "training steps, instead of the task's")
      .at_least(1)
      .at_most(0x1p40)
      .off(0);
  s.option("batch", &TrainOptions::batch, "examples per step, instead of the task's")
      .at_least(1)
      .at_most(kMostCount)
      .off(0);
  s.option("parts", &TrainOptions::parts,
           "parts into which each batch is divided; distributed over the ranks")
      .at_least(1)
      .at_most(1024);
  s.option("evaluate_every", &TrainOptions::evaluate_every,
           "steps between evaluations, instead of the task's")
      .at_least(1)
      .at_most(kMostCount)
      .off(0);
  s.option("rate", &TrainOptions::rate, "learning rate, instead of the task's").at_least(0).shown("R");
  s.option("schedule", &TrainOptions::decay, "schedule of the learning rate, instead of the task's",
           {{"constant", nn::Schedule::Decay::constant},
            {"cosine", nn::Schedule::Decay::cosine},
            {"linear", nn::Schedule::Decay::linear}})
      .member("decay");
  s.option("target_loss", &TrainOptions::target_loss,
           "end a run at the first evaluation at or below this loss")
      .shown("L");
  s.option("precision", &TrainOptions::precision, "type of parameters and sums", precisions());
  s.option("checkpoint", &TrainOptions::checkpoint,
           "file written at every evaluation; a run resumes from an existing one")
      .file(Use::output_file)
      .shown("FILE")
      .effect(Effect::display);
  s.option("out", &TrainOptions::folder, "folder for log.csv, log.jsonl and loss.png")
      .member("folder")
      .file(Use::output_folder)
      .shown("DIR")
      .required()
      .effect(Effect::display);
  s.useless(
      "data", [](const TrainOptions& o) { return o.task == "xor"; }, "xor has no data files",
      "mnist, charlm or FILE.toml");
}

void describe(Schema<TrainRunOptions>& s) {
  s.of("forecast::TrainRunOptions");
  s.include(&TrainRunOptions::train);
  s.option("trainer", &TrainRunOptions::trainer, "how steps are computed");
  s.include(&TrainRunOptions::predict);
  add_trainer_rules(s);
}

std::vector<NamedSchema> schemas() {
  return {{"forecast.curve", &schema_of<CurveRunOptions>()},
          {"forecast.encode", &schema_of<EncodeRunOptions>()},
          {"forecast.observe", &schema_of<ObserveRunOptions>()},
          {"forecast.rollout", &schema_of<RolloutRunOptions>()},
          {"forecast.sweep", &schema_of<SweepRunOptions>()},
          {"forecast.train", &schema_of<TrainRunOptions>()}};
}

}  // namespace lockstep::forecast
