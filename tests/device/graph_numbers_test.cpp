// Numbers of a graph that change between replays: bit-identical to separate launches.
#include <gtest/gtest.h>

#include <thread>

#include "core/refusal.hpp"
#include "device/devices.hpp"

namespace lockstep {
namespace {

using test::refusal;

class GraphNumbers : public testing::TestWithParam<std::string> {
 protected:
  const Device& device = test_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, GraphNumbers, testing::ValuesIn(test_devices()),
                         [](const auto& run) { return test_name(run.param); });

constexpr int64_t kPoints = 1000;

const Kernel& step() {
  static const Kernel k = kernel(
      "test.graph_step", [](At<1> at, Param<f32> rate, InOut<f32, 1> x, Param<i32> shift, Param<u32> mask) {
        const Val<f32> old = x[at];
        x[at] = old * (1.0f - rate) + cast<f32>(cast<u32>(at.x + shift) & mask);
      });
  return k;
}
std::vector<f32> start() {
  std::vector<f32> x(kPoints);
  for (size_t k = 0; k < x.size(); ++k) x[k] = 1.0f / float(k + 1);
  return x;
}
TEST_P(GraphNumbers, ReplaysEqualSeparateLaunches) {
  const Buffer x = device.upload(start()), y = device.upload(start());
  const Graph graph = device.record([&] {
    device.launch(step(), {kPoints}, per_replay("rate", 0.1f), x, per_replay("shift", 0), 7u);
    device.launch(step(), {kPoints}, 0.25f, x, 3, per_replay("mask", 0xffu));
    device.launch(step(), {kPoints}, per_replay("rate", 0.5f), x, -2, per_replay("mask", 1u));
  });
  const auto expect = [&](float first, float last, int shift, u32 mask, u32 last_mask) {
    device.launch(step(), {kPoints}, first, y, shift, 7u);
    device.launch(step(), {kPoints}, 0.25f, y, 3, mask);
    device.launch(step(), {kPoints}, last, y, -2, last_mask);
    EXPECT_EQ(device.download<f32>(x), device.download<f32>(y));
  };
  device.replay(graph);
  expect(0.1f, 0.5f, 0, 0xff, 1);
  device.replay(graph, Arguments().set("rate", 0.3f));
  expect(0.3f, 0.3f, 0, 0xff, 1);
  device.replay(graph, Arguments().set("shift", -5).set("mask", 12u));
  expect(0.3f, 0.3f, -5, 12, 12);
  device.replay(graph);  // values stay
  expect(0.3f, 0.3f, -5, 12, 12);
  for (int k = 0; k < 20; ++k) {
    device.replay(graph, Arguments().set("rate", 1.0f / float(k + 3)).set("shift", k));
    device.launch(step(), {kPoints}, 1.0f / float(k + 3), y, k, 7u);
    device.launch(step(), {kPoints}, 0.25f, y, 3, 12u);
    device.launch(step(), {kPoints}, 1.0f / float(k + 3), y, -2, 12u);
  }
  EXPECT_EQ(device.download<f32>(x), device.download<f32>(y));
}

TEST_P(GraphNumbers, WrongValuesAreRefusedAndChangeNothing) {
  const Buffer x = device.upload(start()), y = device.upload(start());
  const Graph graph = device.record(
      [&] { device.launch(step(), {kPoints}, per_replay("rate", 0.1f), x, per_replay("shift", 4), 7u); });
  EXPECT_EQ(
      refusal([&] { device.replay(graph, Arguments().set("rate", 0.9f).set("speed", 1)); }),
      "a value of speed, which no launch of the graph has [Device::replay]: expected one of rate, shift");
  EXPECT_TRUE(refusal([&] { device.replay(graph, Arguments().set("rate", 0.9f).set("shift", 1.5)); })
                  .starts_with("1.5 [Device::replay, shift for kernel test.graph_step, argument 3 (p1), "
                               "recorded near graph_numbers_test.cpp:"));
  EXPECT_NE(refusal([&] { device.replay(graph, Arguments().set("shift", x)); }), "nothing thrown");
  EXPECT_EQ(refusal([&] { device.replay(graph, Arguments().set("shift", 1).set("shift", 2)); }),
            "two values of shift [Device::replay]: expected one");
  const Graph plain = device.record([&] { device.launch(step(), {kPoints}, 0.1f, y, 4, 7u); });
  EXPECT_EQ(
      refusal([&] { device.replay(plain, Arguments().set("rate", 1)); }),
      "a value of rate, which no launch of the graph has [Device::replay]: expected a graph that recorded "
      "numbers by per_replay");
  EXPECT_THROW(device.replay(Graph(), Arguments().set("rate", 1)), InputError);
  const Device other = Device::open("interp");
  EXPECT_THROW(other.replay(graph, Arguments().set("rate", 1)), InputError);
  device.replay(graph);
  device.replay(plain);
  EXPECT_EQ(device.download<f32>(x), device.download<f32>(y));
}

TEST_P(GraphNumbers, OutsideOfARecordingTheyAreNumbers) {
  const Buffer x = device.upload(start()), y = device.upload(start());
  device.launch(step(), {kPoints}, per_replay("rate", 0.1f), x, per_replay("shift", 2), 7u);
  device.launch(step(), {kPoints}, Arguments().set("p0", 0.1f).set("b0", y).set("p1", 2).set("p2", 7u));
  EXPECT_EQ(device.download<f32>(x), device.download<f32>(y));
  EXPECT_NE(refusal([&] { device.launch(step(), {kPoints}, 0.1f, per_replay("x", 1), 2, 7u); }),
            "nothing thrown");
  // A launch over nothing has its names all the same.
  const Graph graph = device.record([&] { device.launch(step(), {0}, per_replay("rate", 0.1f), x, 2, 7u); });
  EXPECT_NO_THROW(device.replay(graph, Arguments().set("rate", 0.2f)));
}

// A domain above the limits is several dispatches: all of them change.
TEST_P(GraphNumbers, DomainsThatAreSplit) {
  DeviceOptions options;
  options.lower_limits = [](Limits& limits) { limits.groups = {3, 2, 2}; };
  const Device small = Device::open(GetParam(), options);
  const Buffer x = small.upload(start()), y = small.upload(start());
  const Graph graph = small.record(
      [&] { small.launch(step(), {kPoints}, per_replay("rate", 0.1f), x, per_replay("shift", 0), 7u); });
  small.replay(graph, Arguments().set("rate", 0.7f).set("shift", 9));
  small.launch(step(), {kPoints}, 0.7f, y, 9, 7u);
  EXPECT_EQ(small.download<f32>(x), small.download<f32>(y));
}

TEST_P(GraphNumbers, ThreadsReplayOneGraph) {
  const Kernel add = kernel("test.graph_add", [](At<1> at, InOut<i32, 1> x, Param<i32> by) { x[at] += by; });
  const Buffer x = device.upload(std::vector<i32>(64, 0));
  const Graph graph = device.record([&] { device.launch(add, {64}, x, per_replay("by", 0)); });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int k = 0; k < 10; ++k) device.replay(graph, Arguments().set("by", 1 << (8 * t)));
      });
  }
  EXPECT_EQ(device.download<i32>(x), std::vector<i32>(64, 10 * 0x01010101));
}

}  // namespace
}  // namespace lockstep
