#include <gtest/gtest.h>

#include <thread>

#include "device/devices.hpp"
#include "device/fault.hpp"
#include "lockstep/context.hpp"

namespace lockstep {
namespace {

class Launch : public testing::TestWithParam<std::string> {
 protected:
  const Device& device = test_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, Launch, testing::ValuesIn(test_devices()),
                         [](const auto& run) { return test_name(run.param); });

const Kernel& add_scalar() {
  static const Kernel k = kernel(
      "test.add", [](At<1> at, Grid<i32, 1> in, Out<i32, 1> out, Param<i32> by) { out[at] = in[at] + by; });
  return k;
}

TEST_P(Launch, ComputesAndCounts) {
  const Buffer in = device.upload(std::vector<i32>{1, 2, 3}), out = device.allocate<i32>({3});
  const int64_t before = device.counters().launches;
  device.launch(add_scalar(), {3}, in, out, 10);
  EXPECT_EQ(device.download<i32>(out), (std::vector<i32>{11, 12, 13}));
  EXPECT_EQ(device.counters().launches, before + 1);
}

TEST_P(Launch, ThreadsThatWantOneKernelCompileItOnce) {
  const Kernel fresh = kernel("test.compiled_once", [](At<1> at, Grid<i32, 1> in, Out<i32, 1> out) {
    out[at] = in[at] * 3 + int32_t(sizeof(int));
  });
  const DeviceCounters before = device.counters();
  const size_t known = device.kernels().size();
  std::vector<std::vector<i32>> results(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results)
      threads.emplace_back([&] {
        const Buffer in = device.upload(std::vector<i32>{1, 2}), out = device.allocate<i32>({2});
        device.launch(fresh, {2}, in, out);
        result = device.download<i32>(out);
      });
  }
  for (const auto& result : results) EXPECT_EQ(result, (std::vector<i32>{7, 10}));
  const DeviceCounters after = device.counters();
  EXPECT_EQ(after.kernels_compiled + after.cache_hits, before.kernels_compiled + before.cache_hits + 1);
  const std::vector<KernelReport> reports = device.kernels();
  ASSERT_EQ(reports.size(), known + 1);
  EXPECT_EQ(reports.back().name, "test.compiled_once");
  EXPECT_LE(reports.back().begin_s, reports.back().end_s);
}

TEST_P(Launch, AKernelThatFailedToCompileIsCompiledAgain) {
  const Kernel fresh =
      kernel("test.compiled_again", [](At<1> at, Out<i32, 1> out) { out[at] = Val<i32>(11); });
  const Buffer out = device.allocate<i32>({1});
  set_fault("test.compile:compile");
  {
    const device::StageScope scope("test.compile");
    EXPECT_THROW(device.launch(fresh, {1}, out), DeviceError);
    device.launch(fresh, {1}, out);
  }
  set_fault("");
  EXPECT_EQ(device.download<i32>(out), (std::vector<i32>{11}));
}

TEST_P(Launch, EmptyDomainsDoNothing) {
  const Buffer none = device.allocate<i32>({0});
  const int64_t before = device.counters().launches;
  device.launch(add_scalar(), {0}, none, device.allocate<i32>({0}), 1);
  EXPECT_EQ(device.counters().launches, before);
}

TEST_P(Launch, ArgumentsAreCheckedByName) {
  const Buffer in = device.upload(std::vector<i32>{1, 2, 3}), out = device.allocate<i32>({3});
  const auto message = [&](auto launch) -> std::string {
    try {
      launch();
    } catch (const InputError& error) { return error.what(); }
    return "nothing thrown";
  };
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, out); }),
            "2 arguments [kernel test.add]: expected 2 buffers and 1 numbers");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, out, 1.5); }),
            "1.5 [kernel test.add, argument 3]: expected a value that i32 holds");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, out, int64_t(1) << 40); }),
            "1099511627776 [kernel test.add, argument 3]: expected a value that i32 holds");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, device.allocate<f32>({3}), 1); }),
            "a buffer of f32 (3,) [kernel test.add, argument 2]: expected i32 of rank 1");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {4}, in, out, 1); }),
            "shape (3,) [kernel test.add, argument 1]: expected at least the extent (4,)");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3, 1}, in, out, 1); }),
            "extent (3, 1) [kernel test.add]: expected rank 1");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, in, 1); }),
            "buffers 2 and 1 overlap and one is written [kernel test.add]: expected separate memory, or one "
            "InOut parameter");
}

TEST_P(Launch, GraphsReplayWhatWasRecorded) {
  const Buffer a = device.upload(std::vector<i32>{5}), b = device.allocate<i32>({1});
  device.launch(add_scalar(), {1}, a, b, 1);  // compiled before the recording
  const Graph graph = device.record([&] {
    for (int n = 0; n < 3; ++n) {
      device.launch(add_scalar(), {1}, a, b, 1);
      device.copy(b, a);
    }
  });
  EXPECT_EQ(device.download<i32>(a), std::vector<i32>{5});
  device.replay(graph);
  device.replay(graph);
  EXPECT_EQ(device.download<i32>(a), std::vector<i32>{11});
}

TEST_P(Launch, WideIndicesGiveTheSame) {
  if (!device.info().limits.f64) GTEST_SKIP() << "no 64-bit integers on " << GetParam();
  DeviceOptions options;
  options.wide_index = true;
  const Device wide = Device::open(GetParam(), options);
  const Kernel k = kernel("test.wide", [](At<2> at, Grid<f32, 2> in, Out<f32, 2> out) {
    out[at] = in[at.x(1).y(0)] + in[at.y(-1)];
  });
  std::vector<f32> v(35 * 70);
  for (size_t n = 0; n < v.size(); ++n) v[n] = float(n * n % 1013);
  const auto run = [&](const Device& d) {
    const Buffer out = d.allocate<f32>({35, 70});
    d.launch(k, {35, 70}, d.upload(std::span<const f32>(v), {35, 70}), out);
    return d.download<f32>(out);
  };
  EXPECT_EQ(run(device), run(wide));
}

TEST_P(Launch, SecondsAreMeasured) {
  const Buffer in = device.upload(std::vector<i32>(100000, 1)), out = device.allocate<i32>({100000});
  EXPECT_GT(device.seconds([&] { device.launch(add_scalar(), {100000}, in, out, 1); }), 0);
}

TEST(Open, RefusesUnknownNamesAndSaysWhyNoneWorked) {
  EXPECT_THROW(Device::open("gpu"), InputError);
  EXPECT_THROW(Device::open("cpu:3"), InputError);
  EXPECT_THROW(Device::open("cuda:x"), InputError);
  try {
    Device::open("cuda:999");
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:999: "), std::string::npos) << error.what();
  }
}

TEST(Open, TakesTheFirstThatWorks) {
  EXPECT_EQ(Device::open("cuda:999,interp").info().kind, DeviceKind::interp);
}

TEST(Open, ListsEveryKind) {
  std::map<DeviceKind, int> kinds;
  for (const DeviceStatus& s : Device::list()) {
    ++kinds[s.info.kind];
    EXPECT_EQ(s.available, s.reason.empty()) << s.info.name;
  }
  EXPECT_EQ(kinds.size(), 4u);
}

}  // namespace
}  // namespace lockstep
