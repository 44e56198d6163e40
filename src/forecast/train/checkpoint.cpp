#include "forecast/train/checkpoint.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "io/arrays/npy.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {

namespace {

constexpr auto kExpected = "a checkpoint of forecast train";

template <class E>
std::vector<E> values(const io::NpzArrays& arrays, const std::string& name, const std::string& where) {
  const Array& a = io::find_array(arrays, name, where);
  if (a.storage() != kStorageOf<E>)
    throw InputError(fmt::format("{} of another type", name), where, kExpected);
  const auto* data = reinterpret_cast<const E*>(a.data());
  return {data, data + a.elements()};
}

const Array& vector_of(const io::NpzArrays& arrays, const std::string& name, const Array* like,
                       const std::string& where) {
  const Array& a = io::find_array(arrays, name, where);
  const bool fits = a.rank() == 1 && (a.storage() == Storage::f32 || a.storage() == Storage::f64) &&
                    (!like || (a.storage() == like->storage() && a.elements() == like->elements()));
  if (!fits) throw InputError(fmt::format("{} of shape {}", name, to_string(a.shape())), where, kExpected);
  return a;
}

constexpr size_t kColumns = 8;
constexpr bool kIsCount[kColumns] = {true, false, false, false, false, false, true, true};

}  // namespace

std::string settings_text(const Task& task, const TrainOptions& options, uint64_t seed) {
  std::string text;
  const auto line = [&](const char* name, const auto& value) { text += fmt::format("{}={}\n", name, value); };
  const nn::OptimizerOptions& o = task.optimizer;
  line("task", task.name);
  line("model", task.model);
  line("trainer", options.trainer);
  line("seed", seed);
  line("steps", task.steps);
  line("batch", task.batch);
  line("evaluate-every", task.evaluate_every);
  line("precision", name(options.precision));
  line("optimizer", fmt::format("{} momentum {} decay {} clip {}", optimize::name(o.method), o.momentum,
                                o.weight_decay, o.clip_norm));
  line("schedule", fmt::format("{} rate {} warmup {} total {} final {} every {} factor {}",
                               name(o.schedule.decay), o.schedule.rate, o.schedule.warmup, o.schedule.total,
                               o.schedule.final_share, o.schedule.every, o.schedule.factor));
  const std::vector<double> start = nn::initial_parameters(task.network, seed);
  double sum = 0, turned = 0;  // of another network or other data they differ
  for (size_t i = 0; i < start.size(); ++i) sum += start[i], turned += start[i] * double(i % 97);
  line("network", fmt::format("{} parameters {} {}", start.size(), sum, turned));
  line("examples", fmt::format("{} {} {}", task.train.count(), task.held.count(), task.validation.count()));
  return text;
}

void write_checkpoint(const std::filesystem::path& path, const std::string& settings,
                      const TrainingState& state, const TrainRun& run) {
  io::NpzArrays arrays;
  arrays.emplace_back("settings", Array::of(std::vector<uint8_t>(settings.begin(), settings.end())));
  arrays.emplace_back("counters",
                      Array::of(std::vector<int64_t>{state.step, state.optimizer_steps, state.moment_steps,
                                                     run.jumps, run.accepted, run.reached ? 1 : 0}));
  arrays.emplace_back("seconds", Array::of(std::vector<double>{run.seconds}));
  std::vector<double> log;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const LogRow& r : run.log)
    log.insert(log.end(), {double(r.step), r.train_loss, r.rate, r.val_loss.value_or(kNone),
                           r.val_accuracy.value_or(kNone), r.seconds, double(r.jumps), double(r.accepted)});
  arrays.emplace_back("log", Array::of(std::move(log), {int64_t(run.log.size()), int64_t(kColumns)}));
  arrays.emplace_back("parameters", state.parameters);
  arrays.emplace_back("optimizer_first", state.first);
  arrays.emplace_back("optimizer_second", state.second);
  arrays.emplace_back("optimizer_move", state.move);
  for (const auto& [name, array] : state.policy) arrays.emplace_back("policy_" + name, array);
  io::write_npz(path, arrays);
}

std::optional<TrainingState> read_checkpoint(const std::filesystem::path& path, const std::string& settings,
                                             TrainRun& run) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string where = path.string();
  const io::NpzArrays arrays = io::read_npz(path);
  const std::vector<uint8_t> saved = values<uint8_t>(arrays, "settings", where);
  std::istringstream had(std::string(saved.begin(), saved.end())), has(settings);
  for (std::string before, now; std::getline(has, now);) {
    if (!std::getline(had, before)) before = "nothing";
    if (before != now)
      throw InputError(fmt::format("a checkpoint of other settings: {}", before), where, now)
          .with_hint("give another --checkpoint, or remove the file to begin anew");
  }
  const std::vector<int64_t> counters = values<int64_t>(arrays, "counters", where);
  const std::vector<double> seconds = values<double>(arrays, "seconds", where),
                            log = values<double>(arrays, "log", where);
  if (counters.size() != 6 || seconds.size() != 1 || log.empty() || log.size() % kColumns != 0 ||
      counters[0] < 0)
    throw InputError("counters or log of other sizes", where, kExpected);
  for (size_t i = 0; i < log.size(); ++i)
    if (kIsCount[i % kColumns] && !(log[i] >= 0 && log[i] <= 0x1p53))
      throw InputError(fmt::format("{} in row {} of the log", log[i], i / kColumns), where, kExpected);
  TrainingState state;
  state.step = counters[0];
  state.optimizer_steps = counters[1];
  state.moment_steps = counters[2];
  state.parameters = vector_of(arrays, "parameters", nullptr, where);
  state.first = vector_of(arrays, "optimizer_first", &state.parameters, where);
  state.second = vector_of(arrays, "optimizer_second", &state.parameters, where);
  state.move = vector_of(arrays, "optimizer_move", &state.parameters, where);
  for (const auto& [name, array] : arrays)
    if (name.starts_with("policy_")) state.policy.emplace_back(name.substr(7), array);
  run.jumps = counters[3];
  run.accepted = counters[4];
  run.reached = counters[5] != 0;
  run.seconds = seconds[0];
  const auto optional = [](double v) { return std::isnan(v) ? std::nullopt : std::optional<double>(v); };
  for (size_t i = 0; i < log.size(); i += kColumns)
    run.log.push_back({int64_t(log[i]), log[i + 1], log[i + 2], optional(log[i + 3]), optional(log[i + 4]),
                       log[i + 5], int64_t(log[i + 6]), int64_t(log[i + 7])});
  return state;
}

}  // namespace lockstep::forecast
