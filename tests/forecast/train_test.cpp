// Training: tasks that are solved, runs that resume bit for bit, trainings on several devices, refusals.
#include "lockstep/forecast/train.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "device/devices.hpp"
#include "forecast/train/log.hpp"
#include "forecast/train/source.hpp"
#include "forecast/train/task.hpp"
#include "forecast/training_fixture.hpp"
#include "io/arrays/idx.hpp"
#include "io/arrays/npy.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

// 60 examples of three classes in the given order, the last fifth for validation: what is said of them.
TEST_F(Training, ClassesThatOnePartLacksAreNamed) {
  const auto said = [&](const std::function<int(int)>& class_of) {
    std::vector<f32> x;
    std::vector<i32> y;
    for (int i = 0; i < 60; ++i) x.push_back(f32(i)), y.push_back(class_of(i));
    io::write_npz(folder_ / "three.npz", {{"inputs", Array::of(x, {60, 1})}, {"targets", Array::of(y)}});
    std::ofstream(folder_ / "three.toml")
        << "data = \"three.npz\"\nsteps = 1\n[[layers]]\nkind = \"dense\"\nunits = 3\n";
    ::testing::internal::CaptureStderr();
    read_task(folder_ / "three.toml", folder_);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said([](int i) { return i % 3; }), "");
  const std::string sorted = said([](int i) { return i / 20; });
  EXPECT_NE(sorted.find("no example of class 0, 1 is for validation"), std::string::npos) << sorted;
  EXPECT_EQ(sorted.find("is for training"), std::string::npos) << sorted;
  const std::string last = said([](int i) { return i < 48 ? i % 2 : i % 3; });
  EXPECT_NE(last.find("no example of class 2 is for training"), std::string::npos) << last;
  EXPECT_EQ(last.find("is for validation"), std::string::npos) << last;
}

TEST_F(Training, CurvesHaveAnInkForEachRun) {
  TrainResult result;
  for (int r = 0; r < 3; ++r) {
    TrainRun& run = result.runs.emplace_back();
    for (int step = 1; step <= 2; ++step) {
      LogRow& row = run.log.emplace_back();
      row.step = step, row.train_loss = step;
      if (step == 2) row.val_loss = 5;
    }
  }
  const std::vector<io::PlotSeries> curves = loss_curves(result);
  ASSERT_EQ(curves.size(), 6u);
  for (size_t r = 0; r < 3; ++r) {
    const io::PlotSeries &training = curves[2 * r], &validation = curves[2 * r + 1];
    EXPECT_EQ(training.ink, io::series_ink(r));
    EXPECT_EQ(validation.ink, training.ink);
    EXPECT_TRUE(validation.dashed && !training.dashed);
    EXPECT_EQ(training.x, (std::vector<double>{1, 2}));
    EXPECT_EQ(training.y[0], 1);
    EXPECT_NEAR(training.y[1], 0.95 * 1 + 0.05 * 2, 1e-15);
    EXPECT_EQ(validation.x, std::vector<double>{2});
    EXPECT_EQ(validation.y, std::vector<double>{5});
  }
}

TEST_F(Training, XorIsSolvedByEverySeed) {
  Context context(on(host_devices().back()));
  TrainOptions options{.task = "xor", .folder = folder_ / "out", .seeds = 3};
  const TrainResult result = train(context, options);
  ASSERT_EQ(result.runs.size(), 3u);
  EXPECT_EQ(result.parameters, 2 * 8 + 8 + 8 * 2 + 2);
  std::set<double> losses;
  for (const TrainRun& run : result.runs) {
    EXPECT_EQ(run.accuracy, 1.0);
    EXPECT_LT(run.val_loss, 0.1);
    EXPECT_GT(run.log.front().val_loss.value(), 0.4);
    EXPECT_EQ(run.steps, 300);
    ASSERT_EQ(run.log.size(), 301u);
    losses.insert(run.val_loss);
  }
  EXPECT_EQ(losses.size(), 3u);
  for (const auto& file : result.files) EXPECT_GT(fs::file_size(file), 1000u) << file;

  options.target_loss = 0.3;
  options.seeds = 1;
  const TrainResult early = train(context, options);
  EXPECT_TRUE(early.runs[0].reached);
  EXPECT_LT(early.runs[0].steps, 300);
  EXPECT_LE(early.runs[0].val_loss, 0.3);
}

TEST_F(Training, SameBitsOnEveryHostDevice) {
  const TrainOptions options{.task = line_task(kAdam)};
  std::vector<TrainRun> runs;
  for (const std::string& name : host_devices()) {
    Context context(on(name));
    runs.push_back(train(context, options).runs[0]);
  }
  for (const TrainRun& run : runs) expect_same_run(run, runs[0]);
  EXPECT_LT(runs[0].val_loss, 0.8 * runs[0].log.front().val_loss.value());
}

/// Another policy, stopped at a step as a kill would.
class Interrupted final : public StepPolicy {
 public:
  Interrupted(std::unique_ptr<StepPolicy> inner, int64_t at) : inner_(std::move(inner)), at_(at) {}
  void step(TrainingView& view, int64_t step, const Buffer& loss) override {
    if (step == at_) throw std::runtime_error("interrupted");
    inner_->step(view, step, loss);
  }
  void evaluate(const std::function<void()>& work) override { inner_->evaluate(work); }
  int64_t jumps() const override { return inner_->jumps(); }
  int64_t accepted() const override { return inner_->accepted(); }
  std::vector<std::pair<std::string, Array>> state() const override { return inner_->state(); }
  void restore(const std::vector<std::pair<std::string, Array>>& state) override { inner_->restore(state); }

 private:
  std::unique_ptr<StepPolicy> inner_;
  int64_t at_;
};

TEST_F(Training, ARunThatWasCutGoesOnToTheBit) {
  for (const char* optimizer : {kAdam, "method = \"sgd\"\nrate = 0.1\nmomentum = 0.9"}) {
    TrainOptions options{.task = line_task(optimizer)};
    Context context(on(host_devices().back()));
    const TrainRun whole = train(context, options).runs[0];
    options.checkpoint = folder_ / "state.npz";
    fs::remove(options.checkpoint);
    options.policy = [](const TrainingView&) { return std::make_unique<Interrupted>(plain_policy(), 47); };
    EXPECT_THROW(train(context, options), std::runtime_error);
    options.policy = {};
    const TrainRun rest = train(context, options).runs[0];
    EXPECT_EQ(rest.resumed_at, 40);
    expect_same_run(rest, whole);
    // A finished run is read, not repeated.
    const TrainRun again = train(context, options).runs[0];
    EXPECT_EQ(again.resumed_at, 60);
    expect_same_run(again, whole);
    options.rate = 0.05;
    EXPECT_NE(refused(options).find("other settings: rate = "), std::string::npos) << refused(options);
  }
}

// Equal counts and sizes are not the same run.
TEST_F(Training, ACheckpointIsOfTheDataAndTheNetwork) {
  TrainOptions options{.task = line_task(kAdam), .checkpoint = folder_ / "state.npz"};
  Context context(on(host_devices().back()));
  const TrainRun first = train(context, options).runs[0];
  EXPECT_EQ(train(context, options).runs[0].val_loss, first.val_loss);
  const io::NpzArrays data = io::read_npz(folder_ / "line.npz");
  io::NpzArrays others = data;
  for (auto& [name, array] : others)
    if (name == "targets") {
      std::vector<i32> turned(array.as<i32>().begin(), array.as<i32>().end());
      for (i32& t : turned) t = 1 - t;
      array = Array::of(std::move(turned));
    }
  io::write_npz(folder_ / "line.npz", others);
  EXPECT_NE(refused(options).find("train-targets = "), std::string::npos) << refused(options);
  io::write_npz(folder_ / "line.npz", data);
  std::ifstream in(options.task);
  std::string text(std::istreambuf_iterator<char>(in), {});
  text.replace(text.find("\"tanh\""), 6, "\"sigmoid\"");
  std::ofstream(options.task) << text;
  EXPECT_NE(refused(options).find("network = "), std::string::npos) << refused(options);
}

// A checkpoint names the bins of a two-hot loss; number 2, as losses are named else, is that of bins weighted by logarithms.
TEST_F(Training, ACheckpointIsOfTheBinsOfItsLoss) {
  Context context(on(host_devices().back()));
  for (const auto& [loss, named] :
       {std::pair{"cross_entropy", "loss 0"}, {"two_hot", "loss two_hot of symexp"}}) {
    TrainOptions options{.task = line_task(kAdam, loss), .checkpoint = folder_ / fmt::format("{}.npz", loss)};
    io::NpzArrays data = io::read_npz(folder_ / "line.npz");
    for (auto& [name, array] : data)
      if (name == "targets" && loss == std::string("two_hot"))
        array = Array::of(std::vector<f32>(array.as<i32>().begin(), array.as<i32>().end()));
    io::write_npz(folder_ / "line.npz", data);
    const TrainRun first = train(context, options).runs[0];
    EXPECT_EQ(train(context, options).runs[0].val_loss, first.val_loss);
    for (const auto& [name, array] : io::read_npz(options.checkpoint))
      if (name == "identity") {
        const std::string text(array.as<uint8_t>().begin(), array.as<uint8_t>().end());
        EXPECT_NE(text.find(fmt::format("; {}\"", named)), std::string::npos) << text;
      }
  }
}

TEST_F(Training, FinishedRunsGoOnPastTheirStepsAndTargets) {
  Context context(on(host_devices().back()));
  TrainOptions options{.task = "xor", .steps = 120, .evaluate_every = 20};
  const TrainRun whole = train(context, options).runs[0];
  options.checkpoint = folder_ / "state.npz";
  options.steps = 60;
  train(context, options);
  options.steps = 120;
  const TrainRun longer = train(context, options).runs[0];
  EXPECT_EQ(longer.resumed_at, 60);
  expect_same_run(longer, whole);
  options.steps = 60;
  EXPECT_NE(refused(options).find("after 120 steps"), std::string::npos) << refused(options);
  options.steps = 120;

  fs::remove(options.checkpoint);
  options.target_loss = 0.5;
  const TrainRun early = train(context, options).runs[0];
  ASSERT_TRUE(early.reached);
  ASSERT_LT(early.steps, 120);
  EXPECT_EQ(train(context, options).runs[0].steps, early.steps);
  options.target_loss = {};
  const TrainRun rest = train(context, options).runs[0];
  EXPECT_FALSE(rest.reached);
  expect_same_run(rest, whole);
}

TEST_F(Training, AFinishedCheckpointIsOfItsTrainersOptions) {
  PredictOptions predict;
  predict.warm_up = 8;
  TrainOptions options{.task = line_task(kAdam), .checkpoint = folder_ / "state.npz"};
  options.trainer = "predictive";
  options.policy = predictive_policy(predict);
  Context context(on(host_devices().back()));
  train(context, options);
  predict.spacing = 7;
  options.policy = predictive_policy(predict);
  EXPECT_NE(refused(options).find("spacing=10"), std::string::npos) << refused(options);
}

TEST_F(Training, ACheckpointWithoutItsLogIsRefused) {
  TrainOptions options{.task = line_task(kAdam), .checkpoint = folder_ / "state.npz"};
  Context context(on(host_devices().back()));
  train(context, options);
  const io::NpzArrays sound = io::read_npz(options.checkpoint);
  const auto with_log = [&](const Array& log) {
    io::NpzArrays arrays = sound;
    for (auto& [name, array] : arrays)
      if (name == "log") array = log;
    io::write_npz(options.checkpoint, arrays);
    return refused(options);
  };
  EXPECT_NE(with_log(Array(Storage::f64, {0, 8})).find("an empty log"), std::string::npos);
  EXPECT_NE(with_log(Array::of(std::vector<double>{1e300, 0, 0, 0, 0, 0, 0, 0}, {1, 8})).find("1e+300"),
            std::string::npos);
}

// So few that a twentieth of them, or a fiftieth of the text, has no example: the training set replaces it.
TEST_F(Training, TheSmallestDataSetsHaveHeldOutExamples) {
  const auto idx = [](std::initializer_list<int> sizes) {
    std::string bytes{0, 0, 8, char(sizes.size())};
    size_t count = 1;
    for (const int n : sizes) bytes += {0, 0, 0, char(n)}, count *= size_t(n);
    return bytes + std::string(count, '\3');
  };
  std::ofstream(folder_ / "t10k-images-idx3-ubyte.gz", std::ios::binary) << idx({10, 28, 28});
  std::ofstream(folder_ / "t10k-labels-idx1-ubyte.gz", std::ios::binary) << idx({10});
  std::string text;
  for (int k = 0; k < 2560; ++k) text += "abcdefg "[k * k % 7];
  std::ofstream(folder_ / "tinyshakespeare.txt") << text;
  for (const char* name : {"mnist", "charlm"}) {
    const Task task = make_task({.task = name, .data = folder_});
    EXPECT_GE(task.held.count(), 1) << name;
    EXPECT_GE(task.validation.count(), 1) << name;
  }
}

TEST_F(Training, ThePredictiveTrainerRunsInTheSameLoop) {
  Context context(on(host_devices().back()));
  for (const Control control : {Control::none, Control::zero, Control::ema}) {
    SCOPED_TRACE(name(control));
    PredictOptions predict;
    predict.control = control;
    predict.warm_up = 8;
    predict.spacing = 2;
    predict.correct = 3;
    predict.horizons = {4, 8};
    TrainOptions options{.task = line_task(kAdam)};
    options.trainer = "predictive";
    const PolicyFactory policy = options.policy = predictive_policy(predict);
    const TrainRun whole = train(context, options).runs[0];
    EXPECT_EQ(whole.steps, 60);
    EXPECT_EQ(whole.jumps > 0, control != Control::ema);
    options.checkpoint = folder_ / "state.npz";
    fs::remove(options.checkpoint);
    options.policy = [&](const TrainingView& view) {
      return std::make_unique<Interrupted>(policy(view), 47);
    };
    EXPECT_THROW(train(context, options), std::runtime_error);
    options.policy = policy;
    const TrainRun rest = train(context, options).runs[0];
    EXPECT_EQ(rest.resumed_at, 40);
    expect_same_run(rest, whole);
    EXPECT_EQ(rest.jumps, whole.jumps);
    EXPECT_EQ(rest.accepted, whole.accepted);
  }
}

// A stage whose device fails continues from its inputs on the CPU; what is left of the run stays there.
TEST_F(Training, ADeviceThatFailsHandsOverToTheCpu) {
  std::string gpu;
  for (const DeviceStatus& status : Device::list())
    if (gpu.empty() && status.available &&
        (status.info.kind == DeviceKind::cuda || status.info.kind == DeviceKind::webgpu))
      gpu = status.info.name;
  if (gpu.empty()) GTEST_SKIP() << "no GPU";
  const TrainOptions options{.task = line_task(kAdam)};
  ContextOptions device = on(gpu);
  device.on_fallback = [](const std::string&) {};
  Context plain(on("cpu")), failing(device);
  const TrainRun expected = train(plain, options).runs[0];
  set_fault("forecast.train:launch:900");
  const TrainRun run = train(failing, options).runs[0];
  set_fault("");
  EXPECT_EQ(failing.fallbacks().at("forecast.train"), 1);
  ASSERT_EQ(run.log.size(), expected.log.size());
  EXPECT_NEAR(run.val_loss, expected.val_loss, 1e-3);
}

TEST_F(Training, SamplesEachExampleOncePerEpoch) {
  Dataset data{Array(Storage::f32, {10, 1}), Array(Storage::i32, {10}), 0};
  Sampler sampler(data, 3, 4);
  std::vector<i32> seen;
  for (int64_t step = 0; step < 5; ++step) {
    const std::vector<i32> part = sampler.examples(step);
    seen.insert(seen.end(), part.begin(), part.end());
  }
  for (const size_t epoch : {0u, 1u}) {
    std::vector<i32> sorted(seen.begin() + long(10 * epoch), seen.begin() + long(10 * epoch + 10));
    std::sort(sorted.begin(), sorted.end());
    for (i32 k = 0; k < 10; ++k) EXPECT_EQ(sorted[size_t(k)], k);
  }
  EXPECT_FALSE(std::equal(seen.begin(), seen.begin() + 10, seen.begin() + 10));
  Sampler later(data, 3, 4);
  EXPECT_EQ(later.examples(3), std::vector<i32>(seen.begin() + 12, seen.begin() + 16));

  const Dataset text{Array::of(std::vector<i32>(50, 1)), {}, 8};
  Sampler windows(text, 3, 100);
  for (const i32 start : windows.examples(0)) {
    EXPECT_GE(start, 0);
    EXPECT_LE(start + 8, 49);  // the target of the last place is a token
  }
}

TEST_F(Training, AnExplodingLossIsNamedWithItsStep) {
  TrainOptions options{.task = line_task("method = \"sgd\"\nrate = 1e38")};
  EXPECT_NE(refused(options).find(" at step "), std::string::npos) << refused(options);
  EXPECT_NE(refused(options).find("forecast.train"), std::string::npos);
}

TEST_F(Training, BadTasksAreNamed) {
  const auto expect = [&](const TrainOptions& options, const char* part) {
    const std::string text = refused(options);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect({.task = "cifar"}, "xor, mnist, charlm or a .toml file");
  expect({.task = "mnist"}, "t10k-images-idx3-ubyte.gz");
  expect({.task = "charlm", .data = folder_}, "tinyshakespeare.txt");
  expect({.task = "xor", .model = "cnn"}, "model 'cnn'");
  expect({.task = (folder_ / "absent.toml").string()}, "absent.toml");
  const auto file = [&](const std::string& text) {
    std::ofstream(folder_ / "bad.toml") << text;
    return TrainOptions{.task = (folder_ / "bad.toml").string()};
  };
  expect(file("steps = 3\nstepps = 4\ndata = \"x.npz\"\n[[layers]]\nkind = \"dense\"\nunits = 2\n"),
         "stepps");
  expect(file("data = \"x.npz\"\n[[layers]]\nkind = \"lstm\"\n"), "layer kind 'lstm'");
  expect(file("data = \"x.npz\"\n"), "no layers");
  expect(file("data = \"x.npz\"\nlayers = []\n"), "no layers");
  expect(file("[[layers]]\nkind = \"dense\"\nunits = 2\n"), "no data");
  for (const char* line : {"steps = 0", "batch = 0", "evaluate_every = 0", "steps = -1"})
    expect(file(std::string(line) + "\ndata = \"x.npz\"\n"), "1 or more");
  expect(file("loss = \"mean\"\ndata = \"x.npz\"\n"), "loss 'mean'");
  expect(file("data = \"x.npz\"\n[[layers]]\nkind = \"dense\"\nunits = 2\n"), "x.npz");
  io::write_npz(folder_ / "x.npz",
                {{"inputs", Array(Storage::f32, {4, 2})}, {"targets", Array(Storage::i32, {5})}});
  expect(file("data = \"x.npz\"\n[[layers]]\nkind = \"dense\"\nunits = 2\n"), "(5,)");
}

/// Two seeds; every number is another one.
TrainResult two_seeds() {
  TrainResult r;
  r.task = "line", r.model = "mlp", r.trainer = "adam";
  r.parameters = 1, r.train_examples = 2, r.validation_examples = 3, r.batch = 4;
  r.runs.resize(2);
  TrainRun &a = r.runs[0], &b = r.runs[1];
  a.seed = 5, a.steps = 6, a.val_loss = 7, a.seconds = 8, a.accuracy = 0.5, a.jumps = 9, a.accepted = 10;
  a.figures = {{"figure", 11}}, a.reached = true, a.resumed_at = 12;
  b.seed = 13, b.steps = 16, b.val_loss = 9, b.seconds = 18, b.accuracy = 0.75, b.jumps = 10, b.accepted = 14;
  return r;
}

TEST(TrainDocuments, RunsAndTheirMeans) {
  TrainResult r = two_seeds();
  auto j = nlohmann::json::parse(to_json(r));
  const auto expect_numbers = [](const nlohmann::json& of,
                                 std::vector<std::pair<const char*, double>> numbers) {
    for (const auto& [name, value] : numbers) EXPECT_EQ(of.at(name), value) << name;
  };
  expect_numbers(j, {{"parameters", 1},
                     {"train_examples", 2},
                     {"validation_examples", 3},
                     {"batch", 4},
                     {"val_loss", 8},
                     {"accuracy", 0.625},
                     {"steps", 11},
                     {"training_seconds", 13},
                     {"jumps", 9.5},
                     {"accepted", 12}});
  EXPECT_TRUE(j["steps"].is_number_integer());
  const auto first = j["runs"][0], second = j["runs"][1];
  expect_numbers(first, {{"seed", 5},
                         {"steps", 6},
                         {"val_loss", 7},
                         {"seconds", 8},
                         {"accuracy", 0.5},
                         {"jumps", 9},
                         {"accepted", 10},
                         {"figure", 11},
                         {"resumed_at", 12}});
  EXPECT_TRUE(first["reached"]);
  EXPECT_TRUE(second["resumed_at"].is_null() && !second["reached"]);
  r.runs[1].accuracy.reset();
  j = nlohmann::json::parse(to_json(r));
  EXPECT_TRUE(j["accuracy"].is_null()) << "not all are of classes";
  EXPECT_TRUE(j["runs"][1]["accuracy"].is_null());
}

// Columns in their order; what was not measured is an empty cell and no member.
TEST_F(Training, LogsHaveARowForEachStep) {
  TrainResult r = two_seeds();
  r.runs[0].log = {{0, std::nan(""), 0.5, 3.0, 0.25, 4.0, 1, 2}, {1, 6.0, 0.125, {}, {}, 9, 7, 8}};
  write_logs(folder_, r.runs);
  EXPECT_EQ(io::read_text_file(folder_ / "log.csv"),
            "seed,step,train_loss,rate,val_loss,val_accuracy,seconds,jumps,accepted\n"
            "5,0,,0.5,3,0.25,4.000,1,2\n"
            "5,1,6,0.125,,,,7,8\n");
  const std::string lines = io::read_text_file(folder_ / "log.jsonl");
  const size_t end = lines.find('\n');
  EXPECT_EQ(nlohmann::json::parse(lines.substr(0, end)), (nlohmann::json{{"seed", 5},
                                                                         {"step", 0},
                                                                         {"rate", 0.5},
                                                                         {"val_loss", 3.0},
                                                                         {"val_accuracy", 0.25},
                                                                         {"seconds", 4.0},
                                                                         {"jumps", 1},
                                                                         {"accepted", 2}}));
  EXPECT_EQ(
      nlohmann::json::parse(lines.substr(end)),
      (nlohmann::json{
          {"seed", 5}, {"step", 1}, {"train_loss", 6.0}, {"rate", 0.125}, {"jumps", 7}, {"accepted", 8}}));
}

TEST(Idx, ReadsBytesAndRefusesOthers) {
  const std::string good(
      "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
      "abcdef",
      18);
  const Array a = io::parse_idx(good, "good");
  EXPECT_EQ(a.shape(), Sizes({2, 3}));
  EXPECT_EQ(char(a.data()[4]), 'e');
  for (const std::string& bad : {std::string(), good.substr(0, 17), good + "g", good.substr(0, 9),
                                 std::string("\0\0\x0d\x01\0\0\0\x01"
                                             "abcd",
                                             12),
                                 std::string("\0\0\x08\x01\xff\xff\xff\xff"
                                             "abcd",
                                             12),
                                 "x" + good})
    EXPECT_THROW(io::parse_idx(bad, "bad"), InputError) << bad.size();
}

TEST_F(Training, DigitsAreLearntFromAFewHundredSteps) {
  const char* set = std::getenv("LOCKSTEP_DATA");
  const fs::path data = fs::path(set ? set : LOCKSTEP_DATA_DEFAULT) / "train";
  if (!fs::exists(data / "t10k-images-idx3-ubyte.gz")) GTEST_SKIP() << "no " << data;
  const std::vector<std::string> devices = host_devices();
  if (std::find(devices.begin(), devices.end(), "cpu") == devices.end())
    GTEST_SKIP() << "no CPU code generator";
  Context context(on("cpu"));
  const TrainResult result =
      train(context, {.task = "mnist", .data = data, .steps = 200, .evaluate_every = 200});
  EXPECT_EQ(result.validation_examples, 2000);
  EXPECT_EQ(result.train_examples, 7744);
  EXPECT_LT(result.runs[0].log.front().val_accuracy.value(), 0.3);
  EXPECT_GT(result.runs[0].accuracy.value(), 0.9);
}

}  // namespace
}  // namespace lockstep::forecast
