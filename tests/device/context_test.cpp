#include "lockstep/context.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "device/devices.hpp"

namespace lockstep {
namespace {

std::optional<std::string> gpu() {
  for (const std::string& name : test_devices())
    if (name.starts_with("cuda") || name.starts_with("webgpu")) return name;
  return {};
}

const Kernel& twice() {
  static const Kernel k =
      kernel("test.twice", [](At<1> at, Grid<f32, 1> in, Out<f32, 1> out) { out[at] = in[at] * 2.0f; });
  return k;
}

std::vector<f32> run(const Device& device) {
  const Buffer in = device.upload(std::vector<f32>{1, 2, 3}), out = device.allocate<f32>({3});
  device.launch(twice(), {3}, in, out);
  return device.download<f32>(out);
}

struct Faults : testing::TestWithParam<const char*> {
  void TearDown() override { set_fault(""); }
};
INSTANTIATE_TEST_SUITE_P(, Faults, testing::Values("allocation", "compile", "launch", "device_lost"));

TEST_P(Faults, AStageFallsBackSaysSoAndGivesTheSame) {
  if (!gpu()) GTEST_SKIP() << "no CUDA or WebGPU device";
  std::vector<std::string> lines;
  ContextOptions options;
  options.device = *gpu();
  options.on_fallback = [&](const std::string& line) { lines.push_back(line); };
  Context context(options);
  set_fault(std::string("test.stage:") + GetParam());
  const std::vector<f32> expected{2, 4, 6};
  EXPECT_EQ(context.stage("test.stage", run), expected);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            std::string("[GPU] test.stage failed: injected fault (") + GetParam() + " 1). CPU fallback.");
  EXPECT_EQ(context.fallbacks(), (std::map<std::string, int64_t>{{"test.stage", 1}}));
  EXPECT_EQ(context.stages().at(0).device, context.cpu().info().name);
  // The device serves the next run, after a loss as well.
  EXPECT_EQ(context.stage("test.stage", run), expected);
  EXPECT_EQ(lines.size(), 1u);
  EXPECT_EQ(context.stages().at(0).device, *gpu());
}

TEST_P(Faults, WithoutFallbackTheErrorPasses) {
  if (!gpu()) GTEST_SKIP() << "no CUDA or WebGPU device";
  ContextOptions options;
  options.device = *gpu();
  options.fallback = false;
  Context context(options);
  set_fault(std::string("test.stage:") + GetParam());
  EXPECT_THROW(context.stage("test.stage", run), DeviceError);
}

TEST(Fault, CountsToTheNth) {
  Context context({.device = "interp"});
  set_fault("s:launch:2");
  EXPECT_NO_THROW(context.stage("s", run));
  EXPECT_NO_THROW(context.stage("other", run));
  EXPECT_THROW(context.stage("s", run), DeviceError);
  EXPECT_NO_THROW(context.stage("s", run));
  set_fault("");
}

TEST(Fault, RefusesOtherForms) {
  for (const char* text : {"x", ":launch", "s:melt", "s:launch:", "s:launch:0", "s:launch:2x"})
    EXPECT_THROW(set_fault(text), InputError) << text;
}

TEST(Stage, CountsItsWork) {
  Context context({.device = "interp"});
  context.stage("count", run);
  const StageRecord r = context.stages().at(0);
  EXPECT_EQ(r.stage, "count");
  EXPECT_EQ(r.launches, 1);
  EXPECT_EQ(r.bytes_to_device, 12);
  EXPECT_EQ(r.bytes_from_device, 12);
  EXPECT_EQ(r.runs, 1);
  EXPECT_GT(context.peak_device_bytes(), 0);
}

TEST(Stage, CountsOfThreadsSumExactly) {
  Context context({.device = "interp"});
  constexpr int kThreads = 4, kStages = 25;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int k = 0; k < kStages; ++k) context.stage(t % 2 ? "odd" : "even", run);
      });
  }
  const DeviceCounters device = context.device().counters();
  StageRecord sum;
  for (const StageRecord& r : context.stages()) {
    EXPECT_EQ(r.runs, kStages * kThreads / 2) << r.stage;
    EXPECT_EQ(r.launches, r.runs) << r.stage;
    sum.launches += r.launches;
    sum.bytes_to_device += r.bytes_to_device;
    sum.bytes_from_device += r.bytes_from_device;
  }
  EXPECT_EQ(sum.launches, device.launches);
  EXPECT_EQ(sum.bytes_to_device, device.bytes_to_device);
  EXPECT_EQ(sum.bytes_from_device, device.bytes_from_device);
}

TEST(Stage, NestedWorkCountsOnce) {
  Context context({.device = "interp"});
  context.run_stage("outer", [&](const Device& device) {
    run(device);
    context.run_stage("inner", [](const Device& inner) { run(inner); });
    run(device);
  });
  for (const StageRecord& r : context.stages()) EXPECT_EQ(r.launches, r.stage == "outer" ? 2 : 1) << r.stage;
}

TEST(Stage, OtherErrorsPassOn) {
  Context context({.device = "interp"});
  EXPECT_THROW(context.stage("bad", [](const Device&) -> int { throw InputError("a", "b", "c"); }),
               InputError);
}

}  // namespace
}  // namespace lockstep
