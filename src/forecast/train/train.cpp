// The loop: segments of steps between evaluations, each a stage that can start again on the CPU.
#include "lockstep/forecast/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "core/reports/json_text.hpp"
#include "forecast/train/checkpoint.hpp"
#include "forecast/train/log.hpp"
#include "forecast/train/ranks/gather_runs.hpp"
#include "forecast/train/ranks/parted_model.hpp"
#include "forecast/train/source.hpp"
#include "forecast/train/task.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/documents.hpp"
#include "nn/losses.hpp"

namespace lockstep::forecast {

namespace {

constexpr auto kStage = "forecast.train";
constexpr int64_t kEvaluated = 500,
                  kEvaluatedRows = 4096;  // examples, places of sequences in one forward pass

class PlainPolicy final : public StepPolicy {
 public:
  void step(TrainingView& view, int64_t step, const Buffer& loss) override {
    view.model.launch_gradient(view.batch(step), loss, uint64_t(step));
    view.optimizer.launch_step(view.model.gradient());
  }
};

std::vector<double> as_doubles(const Array& a) {
  return with_element(a.storage(), [&]<class E>(E) -> std::vector<double> {
    if constexpr (std::is_same_v<E, f32> || std::is_same_v<E, f64>) {
      const E* data = reinterpret_cast<const E*>(a.data());
      return {data, data + a.elements()};
    } else {
      return {};
    }
  });
}

/// Examples 0 … count - 1 of an evaluation: of a text first tokens of windows that do not overlap.
std::vector<i32> evaluated_examples(const Dataset& data, int64_t wanted) {
  const int64_t n = data.count(), count = wanted > 0 ? std::min(wanted, n) : n;
  std::vector<i32> numbers;
  for (int64_t k = 0; k < count; ++k)
    numbers.push_back(i32(k * n / count * std::max<int64_t>(data.window, 1)));
  return numbers;
}

/// A run's objects on one device.
/// Throws InputError for a class that the network has no output for.
void check_classes(const Dataset& part, const std::string& task, int64_t classes) {
  const auto targets = part.targets.as<i32>();
  for (size_t k = 0; k < targets.size(); ++k)
    if (targets[k] < 0 || targets[k] >= classes)
      throw InputError(fmt::format("a target of class {}", targets[k]), fmt::format("task {}", task),
                       fmt::format("0 to {}, as the last layer has {} outputs", classes - 1, classes));
}

struct Engine {
  Engine(const Device& d, const Task& task, const TrainOptions& options, uint64_t seed,
         const parallel::Group& ranks)
      : group(ranks),
        device(d),
        network(d, task.network, {.storage = options.precision, .seed = seed}),
        parted(options.parts > 1 ? std::make_unique<PartedModel>(network, options.parts, ranks) : nullptr),
        optimizer(d, network.parameters(), task.optimizer),
        train(d, task.train, options.precision),
        held(d, task.held, options.precision),
        validation(d, task.validation, options.precision),
        head(task.network.loss, network.output_shape(), options.precision),
        losses(d.allocate(options.precision, {task.evaluate_every})),
        sampler(task.train, seed, task.batch),
        view{parted ? static_cast<nn::TrainableModel&>(*parted) : network,
             optimizer,
             [this](int64_t step) { return train.gather(sampler.examples(step)); },
             held.gather(evaluated_examples(task.held, 256)),
             task.batch,
             seed},
        policy(options.policy ? options.policy(view) : plain_policy()) {
    for (const Dataset* part : {&task.train, &task.held, &task.validation})
      if (task.classes() && part->window == 0)
        check_classes(*part, task.name, network.output_shape()[network.output_shape().rank() - 1]);
  }

  parallel::Group group;
  Device device;
  nn::Network network;
  std::unique_ptr<PartedModel> parted;  // of several parts
  nn::Optimizer optimizer;
  ExampleSource train, held, validation;
  nn::LossHead head;
  Buffer losses;
  Sampler sampler;
  TrainingView view;
  std::unique_ptr<StepPolicy> policy;

  void restore(const TrainingState& s) {
    const auto write = [&](const Array& from, const Buffer& to) {
      if (from.storage() != to.storage() || from.elements() != to.elements())
        throw InputError(fmt::format("{} parameters", from.elements()), "checkpoint",
                         fmt::format("{}", to.elements()));
      device.write(to, from.data(), to.bytes());
    };
    write(s.parameters, network.parameters());
    write(s.first, optimizer.first());
    write(s.second, optimizer.second());
    write(s.move, optimizer.move());
    optimizer.set_steps(s.optimizer_steps, s.moment_steps);
    policy->restore(s.policy);
  }
  TrainingState state(int64_t step) const {
    return {step,
            optimizer.steps(),
            optimizer.moment_steps(),
            device.download(network.parameters()),
            device.download(optimizer.first()),
            device.download(optimizer.second()),
            device.download(optimizer.move()),
            policy->state()};
  }

  struct Score {
    double loss = 0, accuracy = 0;
  };
  /// Ranks share the passes, whose sums are added in order.
  Score evaluate(const std::vector<i32>& examples, bool classes) {
    const int64_t count = int64_t(examples.size()),
                  most = std::clamp<int64_t>(kEvaluatedRows / head.row_count(1), 1, kEvaluated);
    const parallel::Range own = parallel::share((count + most - 1) / most, group);
    std::vector<Score> mine;
    for (int64_t k = own.begin; k < own.end; ++k) {
      const auto begin = examples.begin() + k * most;
      mine.push_back(sums_of({begin, begin + std::min(count - k * most, most)}, classes));
    }
    Score sum;
    for (const Score& one : parallel::numbers_of_all(group, mine))
      sum.loss += one.loss, sum.accuracy += one.accuracy;
    return {sum.loss / double(count), sum.accuracy / double(head.row_count(count))};
  }
  /// Of one pass: the loss times the examples, and how many rows are right.
  Score sums_of(const std::vector<i32>& examples, bool classes) {
    const Buffer loss = losses.rows(0, 1);
    const nn::Batch batch = validation.gather(examples);
    head.check(batch.size, batch.targets);
    const Buffer outputs = network.launch_outputs(batch.inputs, batch.size);
    const nn::Pass pass{device, batch.size, false, 0};
    head.launch(pass, outputs, batch.targets, loss, false);
    return {as_doubles(device.download(loss))[0] * double(batch.size),
            classes ? double(head.correct(pass, outputs, batch.targets)) : 0};
  }
};

/// The training of one seed, by all ranks of the group.
class SeedRun {
 public:
  SeedRun(Context& context, const parallel::Group& group, const TrainOptions& options, const Task& task,
          uint64_t seed, std::filesystem::path checkpoint, const record::Identity& identity)
      : context_(context),
        group_(group),
        options_(options),
        task_(task),
        checkpoint_(std::move(checkpoint)),
        identity_(identity),
        validation_(evaluated_examples(task.validation, task.validation_examples)) {
    run_.seed = seed;
  }

  TrainRun run(const std::function<void(const TrainRun&)>& evaluated) {
    begin();
    evaluated(run_);
    while (state_.step < task_.steps && !run_.reached) {
      segment(std::min(task_.evaluate_every - state_.step % task_.evaluate_every, task_.steps - state_.step));
      evaluated(run_);
    }
    const LogRow& last = run_.log.back();
    run_.steps = state_.step;
    run_.val_loss = last.val_loss.value_or(std::numeric_limits<double>::quiet_NaN());
    run_.accuracy = last.val_accuracy;
    run_.parameters = as_doubles(state_.parameters);
    if (engine_) run_.figures = engine_->policy->figures();
    return run_;
  }

 private:
  /// The stage on the device, or on the CPU once a stage fell back to it; from the state before it either way.
  template <class F>
  void stage(F work) {
    bool again = false;
    const auto with_engine = [&](const Device& device) {
      if (again && group_.size() > 1)
        throw parallel::GroupError("a device failed during a batch that is divided into parts", kStage,
                                   "a working device, because the other ranks cannot repeat their part")
            .with_hint("the same command resumes from its --checkpoint; --device cpu needs no other device");
      again = true;
      if (!engine_ || !engine_->device.same_as(device) || stale_) {
        engine_.reset();
        engine_ = std::make_unique<Engine>(device, task_, options_, run_.seed, group_);
        if (state_.parameters.elements() > 0) engine_->restore(state_);
      }
      stale_ = true;  // until the work is done
      work(*engine_);
      stale_ = false;
    };
    if (context_.fallbacks().empty())
      context_.run_stage(kStage, with_engine);
    else
      context_.run_stage_on_cpu(kStage, with_engine);
  }

  void begin() {
    if (!checkpoint_.empty()) {
      identity_.option("seed", run_.seed);
      auto found = read_checkpoint(checkpoint_, identity_, task_, run_);
      group_.expect_same("checkpoints", found ? fmt::format("step {}", found->step) : "none");
      if (found) {
        state_ = std::move(*found);
        run_.resumed_at = state_.step;
        run_.reached = at_target();
        try {
          stage([](const Engine&) {});  // restores the policy, which knows its own settings
        } catch (const parallel::GroupError&) { throw; } catch (const InputError& e) {
          throw InputError(e.problem(), checkpoint_.string(), e.expected()).with_hint(e.hint());
        }
        return;
      }
    }
    const auto start = std::chrono::steady_clock::now();
    LogRow row;
    row.train_loss = std::numeric_limits<double>::quiet_NaN();
    stage([&](Engine& engine) {
      score(engine, row);
      state_ = engine.state(0);
    });
    finish_segment({row}, start);
  }

  bool at_target() const {
    const std::optional<double> loss = run_.log.back().val_loss;
    return options_.target_loss && loss && *loss <= *options_.target_loss;
  }

  void score(Engine& engine, LogRow& row) {
    Engine::Score s;
    engine.policy->evaluate([&] { s = engine.evaluate(validation_, task_.classes()); });
    row.val_loss = s.loss;
    if (task_.classes()) row.val_accuracy = s.accuracy;
    row.jumps = engine.policy->jumps();
    row.accepted = engine.policy->accepted();
  }

  void segment(int64_t steps) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<LogRow> rows;
    TrainingState after;
    stage([&](Engine& engine) {
      rows.clear();
      for (int64_t k = 0; k < steps; ++k) {
        const int64_t step = state_.step + k;
        LogRow row;
        row.step = step + 1;
        row.rate = engine.optimizer.next_rate();
        engine.policy->step(engine.view, step, engine.losses.rows(k, 1));
        row.jumps = engine.policy->jumps();
        row.accepted = engine.policy->accepted();
        rows.push_back(row);
        if (options_.on_progress && (k + 1) % kReport == 0) report(step + 1);
      }
      const std::vector<double> losses = as_doubles(engine.device.download(engine.losses.rows(0, steps)));
      for (size_t k = 0; k < rows.size(); ++k) rows[k].train_loss = losses[k];
      score(engine, rows.back());
      after = engine.state(state_.step + steps);
    });
    for (const LogRow& row : rows) {
      const bool last = row.val_loss && !std::isfinite(*row.val_loss);
      if (std::isfinite(row.train_loss) && !last) continue;
      const std::string found = fmt::format("{} loss {} at step {}", last ? "validation" : "training",
                                            last ? *row.val_loss : row.train_loss, row.step);
      constexpr const char *kExpected = "a finite loss",
                           *kHint =
                               "a smaller learning rate, warm-up or clip_norm keeps gradients from exploding";
      if (group_.size() == 1) throw InputError(found, kStage, kExpected).with_hint(kHint);
      throw parallel::GroupError(found, kStage, kExpected).on_every_rank().with_hint(kHint);
    }
    state_ = std::move(after);
    finish_segment(rows, start);
  }

  void finish_segment(std::vector<LogRow> rows, std::chrono::steady_clock::time_point start) {
    run_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    LogRow& last = rows.back();
    last.seconds = run_.seconds;
    run_.jumps = last.jumps;
    run_.accepted = last.accepted;
    run_.log.insert(run_.log.end(), rows.begin(), rows.end());
    run_.reached = at_target();
    if (!checkpoint_.empty() && group_.leads()) write_checkpoint(checkpoint_, identity_, state_, run_);
    if (options_.on_progress) report(state_.step);
  }

  void report(int64_t step) const {
    const int64_t before = int64_t(run_.seed - options_.first_seed) * task_.steps;
    options_.on_progress(before + step, options_.seeds * task_.steps);
  }

  static constexpr int64_t kReport = 10;
  Context& context_;
  parallel::Group group_;
  const TrainOptions& options_;
  const Task& task_;
  std::filesystem::path checkpoint_;
  record::Identity identity_;
  std::vector<i32> validation_;
  std::unique_ptr<Engine> engine_;
  bool stale_ = false;
  TrainingState state_;
  TrainRun run_;
};

std::filesystem::path checkpoint_of(const TrainOptions& options, int64_t k) {
  std::filesystem::path path = options.checkpoint;
  if (k > 0 && !path.empty())
    path.replace_filename(fmt::format("{}_seed{}{}", path.stem().string(), options.first_seed + uint64_t(k),
                                      path.extension().string()));
  return path;
}

}  // namespace

std::unique_ptr<StepPolicy> plain_policy() { return std::make_unique<PlainPolicy>(); }

TrainResult train(Context& context, const TrainOptions& options) {
  return train(context, options, parallel::Group());
}

TrainResult train(Context& context, const TrainOptions& given, const parallel::Group& group) {
  const OptionList& list = schema_of<TrainOptions>();
  list.check(&given);
  const Task task = make_task(given);
  if (given.parts > task.batch)
    throw list.error({OptionError::Kind::invalid, "parts", fmt::format("'{}'", given.parts),
                      fmt::format("at most the {} examples of a batch", task.batch), ""});
  const bool parted = given.parts > 1;
  if (std::max(given.parts, parted ? 1 : given.seeds) < group.size())
    throw parallel::GroupError(
        parted ? fmt::format("{} parts for {} ranks", given.parts, group.size())
               : fmt::format("1 part and {} seeds for {} ranks", given.seeds, group.size()),
        "--parts", "at least one part of the batches, or one seed, for each rank")
        .on_every_rank();
  record::Identity identity =
      given.checkpoint.empty() && group.size() == 1 ? record::Identity() : identity_of(task, given);
  if (context.numerics() == Numerics::fast) identity.option("numerics", "fast", true);
  if (group.size() > 1)
    group.expect_same("inputs and options",
                      fmt::format("{} {} {} in {}, {}", identity.to_json(), given.first_seed, given.seeds,
                                  given.folder.string(), given.checkpoint.string()));
  const parallel::Range seeds =
      parted ? parallel::Range{0, given.seeds} : parallel::share(given.seeds, group);
  TrainOptions options = given;
  options.seeds = seeds.size();
  if (!group.leads()) options.on_progress = {}, options.folder.clear();
  TrainResult result;
  result.task = task.name;
  result.model = task.model;
  result.trainer = options.trainer;
  result.parameters = int64_t(nn::initial_parameters(task.network, options.first_seed).size());
  result.train_examples = task.train.count();
  result.validation_examples = int64_t(evaluated_examples(task.validation, task.validation_examples).size());
  result.batch = task.batch;
  const auto write = [&](const TrainRun& current) {
    if (options.folder.empty()) return;
    std::vector<TrainRun> runs = result.runs;
    runs.push_back(current);
    write_logs(options.folder, runs);
  };
  for (int64_t k = seeds.begin; k < seeds.end; ++k) {
    SeedRun run(context, parted ? group : parallel::Group(), options, task, given.first_seed + uint64_t(k),
                checkpoint_of(options, k), identity);
    result.runs.push_back(run.run(write));
  }
  if (!parted && group.size() > 1) {
    result.runs = gather_runs(group, result.runs);
    if (!options.folder.empty()) write_logs(options.folder, result.runs);
  }
  if (!options.folder.empty()) {
    draw_losses(options.folder / "loss.png", result);
    for (const char* name : {"log.csv", "log.jsonl", "loss.png"})
      result.files.push_back(options.folder / name);
  }
  return result;
}

nlohmann::ordered_json document_of(const TrainResult& result) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  double val_loss = 0, accuracy = 0, steps = 0, seconds = 0, jumps = 0, accepted = 0;
  bool classes = true;
  const double share = 1 / double(result.runs.size());
  for (const TrainRun& r : result.runs) {
    nlohmann::ordered_json o{{"seed", r.seed}, {"val_loss", r.val_loss}};
    o["accuracy"] = r.accuracy ? nlohmann::ordered_json(*r.accuracy) : nlohmann::ordered_json(nullptr);
    o["steps"] = r.steps;
    o["seconds"] = r.seconds;
    o["jumps"] = r.jumps;
    o["accepted"] = r.accepted;
    for (const auto& [name, number] : r.figures) o[name] = number;
    o["reached"] = r.reached;
    o["resumed_at"] =
        r.resumed_at >= 0 ? nlohmann::ordered_json(r.resumed_at) : nlohmann::ordered_json(nullptr);
    runs.push_back(std::move(o));
    val_loss += share * r.val_loss;
    accuracy += share * r.accuracy.value_or(0);
    classes = classes && r.accuracy.has_value();
    steps += share * double(r.steps);
    seconds += share * r.seconds;
    jumps += share * double(r.jumps);
    accepted += share * double(r.accepted);
  }
  const auto count = [](double mean) {
    return mean == std::floor(mean) ? nlohmann::ordered_json(int64_t(mean)) : nlohmann::ordered_json(mean);
  };
  nlohmann::ordered_json o{{"task", result.task}, {"model", result.model}, {"trainer", result.trainer}};
  o["parameters"] = result.parameters;
  o["val_loss"] = val_loss;
  o["accuracy"] = classes ? nlohmann::ordered_json(accuracy) : nlohmann::ordered_json(nullptr);
  o["steps"] = count(steps);
  o["training_seconds"] = seconds;
  o["jumps"] = count(jumps);
  o["accepted"] = count(accepted);
  o["batch"] = result.batch;
  o["train_examples"] = result.train_examples;
  o["validation_examples"] = result.validation_examples;
  o["runs"] = std::move(runs);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const auto& f : result.files) files.push_back(f.string());
  o["files"] = std::move(files);
  return o;
}
std::string to_json(const TrainResult& result) { return json_text(document_of(result)); }

}  // namespace lockstep::forecast
