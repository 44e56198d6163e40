#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <regex>
#include <thread>

#include "device/devices.hpp"
#include "device/stages/fault.hpp"
#include "lockstep/context.hpp"
#include "lockstep/kernel/dynamic.hpp"

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

template <class F>
std::string whole_message(F launch) {
  try {
    launch();
  } catch (const InputError& error) { return error.what(); }
  return "nothing thrown";
}
/// Without the lines of this file.
template <class F>
std::string message(F launch) {
  return std::regex_replace(whole_message(launch),
                            std::regex(", (declared|launched) near launch_test\\.cpp:[0-9]+"), "");
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
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, out); }),
            "2 arguments [kernel test.add]: expected 2 buffers and 1 numbers");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, out, 1.5); }),
            "1.5 [kernel test.add, argument 3 (p0)]: expected a value that i32 holds");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, out, int64_t(1) << 40); }),
            "1099511627776 [kernel test.add, argument 3 (p0)]: expected a value that i32 holds");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, device.allocate<f32>({3}), 1); }),
            "a buffer of f32 (3,) [kernel test.add, argument 2 (b1)]: expected a buffer of i32, rank 1");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {4}, in, out, 1); }),
            "shape (3,) [kernel test.add, argument 1 (b0)]: expected at least the extent (4,)");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3, 1}, in, out, 1); }),
            "extent (3, 1) [kernel test.add]: expected rank 1");
  EXPECT_EQ(message([&] { device.launch(add_scalar(), {3}, in, in, 1); }),
            "buffers 2 and 1 overlap and one is written [kernel test.add]: expected separate memory, or one "
            "InOut parameter");
}

TEST_P(Launch, ErrorsNameTheLines) {
  const int declared = __LINE__ + 1;
  const Kernel k = kernel("test.lines", [](At<1> at, Param<i32> by, Out<i32, 1> out) { out[at] = by; });
  const Buffer out = device.allocate<i32>({3});
  const auto place = [](int line) { return "launch_test.cpp:" + std::to_string(line); };
  int line = __LINE__ + 1;
  const std::string wrong_number = whole_message([&] { device.launch(k, {3}, 0.5, out); });
  EXPECT_EQ(wrong_number, "0.5 [kernel test.lines, argument 1 (p0, declared near " + place(declared) +
                              "), launched near " + place(line) + "]: expected a value that i32 holds");
  line = __LINE__ + 1;
  const std::string too_few = whole_message([&] { device.launch_on(device.stream(), k, {3}, 1); });
  EXPECT_EQ(too_few, "1 arguments [kernel test.lines, launched near " + place(line) +
                         "]: expected 1 buffers and 1 numbers");
  const Kernel named = kernel("test.named_lines", [](At<1> at, Parameters& p) {
    const auto to = p.write<i32, 1>("to");
    to[at] = 1;
  });
  const int to_line = __LINE__ - 3;
  line = __LINE__ + 1;
  const std::string missing = whole_message([&] { device.launch(named, {3}, Arguments()); });
  EXPECT_EQ(missing, "no argument [kernel test.named_lines, parameter to, declared near " + place(to_line) +
                         ", launched near " + place(line) + "]: expected a buffer of i32 of rank 1");
}

TEST_P(Launch, ArgumentsBindByPosition) {
  const Kernel k = kernel(
      "test.order", [](At<1> at, Param<i32> by, Grid<i32, 1> in, Out<i32, 1> out) { out[at] = in[at] + by; });
  const Buffer in = device.upload(std::vector<i32>{1}), out = device.allocate<i32>({1});
  device.launch(k, {1}, 4, in, out);
  EXPECT_EQ(device.download<i32>(out), std::vector<i32>{5});
  device.launch(k, {1}, Arguments().set("b1", out).set("p0", 5).set("b0", in));
  EXPECT_EQ(device.download<i32>(out), std::vector<i32>{6});
  EXPECT_EQ(message([&] { device.launch(k, {1}, in, 4, out); }),
            "a buffer of i32 (1,) [kernel test.order, argument 1 (p0)]: expected a number of type i32");
  EXPECT_EQ(message([&] { device.launch(k, {1}, 4, 4, out); }),
            "the number 4 [kernel test.order, argument 2 (b0)]: expected a buffer of i32, rank 1");
  EXPECT_EQ(message([&] { device.launch(k, {1}, 4, in, Buffer()); }),
            "an empty buffer [kernel test.order, argument 3 (b1)]: expected a buffer of i32, rank 1");
}

TEST_P(Launch, NumbersAreHeldOrRefused) {
  const Buffer f = device.allocate<f32>({1}), u = device.allocate<u32>({1});
  const Kernel to_f32 = kernel("test.f32", [](At<1> at, Out<f32, 1> out, Param<f32> v) { out[at] = v; });
  const Kernel to_u32 = kernel("test.u32", [](At<1> at, Out<u32, 1> out, Param<u32> v) { out[at] = v; });
  const auto holds = [&](auto v, f32 expected) {
    device.launch(to_f32, {1}, f, v);
    EXPECT_EQ(device.download<f32>(f)[0], expected);
  };
  holds(0.1, 0.1f);
  holds(16777216, 16777216.0f);
  holds(int64_t(-3) << 40, -3.0f * float(int64_t(1) << 40));
  holds(uint64_t(1) << 63, 0x1p63f);
  holds(-std::numeric_limits<double>::infinity(), -std::numeric_limits<f32>::infinity());
  device.launch(to_f32, {1}, f, std::nan(""));
  EXPECT_TRUE(std::isnan(device.download<f32>(f)[0]));
  device.launch(to_u32, {1}, u, 4294967295.0);
  EXPECT_EQ(device.download<u32>(u)[0], 4294967295u);
  for (const Argument& v :
       {Argument(int64_t(16777217)), Argument(1e39), Argument(uint64_t(16777217) << 39)}) {
    const Argument list[] = {f, v};
    EXPECT_THROW(device.launch_with(to_f32, {1}, list, {}), InputError);
  }
  for (const Argument& v : {Argument(int64_t(-1)), Argument(4294967296.0), Argument(0.5),
                            Argument(std::nan("")), Argument(-1e30), Argument(uint64_t(1) << 32)}) {
    const Argument list[] = {u, v};
    EXPECT_THROW(device.launch_with(to_u32, {1}, list, {}), InputError);
  }
}

TEST_P(Launch, NumbersOfF64KeepAllTheirDigits) {
  if (!device.info().limits.f64) GTEST_SKIP() << GetParam() << " has no f64";
  const Kernel k = kernel("test.f64", [](At<1> at, Out<f64, 1> out, Param<f64> v) { out[at] = v; });
  const Buffer out = device.allocate<f64>({1});
  for (const double v : {0.1, 1.0 / 3, -1e300, 0x1p-1074, 16777217.0, 9007199254740991.0}) {
    ASSERT_NE(double(float(v)), v);
    device.launch(k, {1}, out, v);
    EXPECT_EQ(device.download<f64>(out)[0], v);
  }
}

TEST_P(Launch, WindowsThatShareAnElementAreRefused) {
  const Kernel k =
      kernel("test.window", [](At<2> at, Grid<i32, 2> in, Out<i32, 2> out) { out[at] = in[at] + 1; });
  const Buffer b = device.upload(std::vector<i32>(64, 1)).reshape({8, 8});
  const auto launch = [&](const Shape& from, const Shape& to) {
    device.launch(k, {4, 4}, b.window(from, {4, 4}), b.window(to, {4, 4}));
  };
  EXPECT_EQ(
      message([&] { launch({0, 0}, {1, 1}); }),
      "buffers 2 and 1 overlap and one is written [kernel test.window]: expected separate memory, or one "
      "InOut parameter");
  EXPECT_THROW(launch({0, 0}, {3, 3}), InputError);
  EXPECT_THROW(launch({3, 0}, {0, 3}), InputError);
  EXPECT_NO_THROW(launch({0, 0}, {0, 4}));
  EXPECT_NO_THROW(launch({0, 0}, {4, 0}));
  EXPECT_NO_THROW(launch({0, 4}, {4, 0}));
  EXPECT_NO_THROW(launch({4, 4}, {3, 0}));
}

TEST_P(Launch, EmptyHandlesAreRefused) {
  const Buffer in = device.upload(std::vector<i32>{1}), out = device.allocate<i32>({1});
  const Device none;
  EXPECT_EQ(message([&] { none.launch(add_scalar(), {1}, in, out, 1); }),
            "an empty Device handle [lockstep::Device]: expected a device returned by Device::open");
  EXPECT_THROW(none.allocate<i32>({1}), InputError);
  EXPECT_THROW(none.stream(), InputError);
  EXPECT_THROW(none.info(), InputError);
  EXPECT_THROW(none.synchronize(), InputError);
  EXPECT_THROW(none.supports(add_scalar()), InputError);
  EXPECT_THROW(none.write(in, nullptr, 4), InputError);
  EXPECT_EQ(message([&] { device.launch(Kernel(), {1}, in, out, 1); }),
            "a Kernel that was never traced [lockstep::Kernel]: expected one from kernel(…)");
  EXPECT_THROW(device.supports(Kernel()), InputError);
  EXPECT_THROW(device.prepare(Kernel()), InputError);
  EXPECT_EQ(message([&] { device.replay(Graph()); }),
            "an empty graph [Device::replay]: expected a graph recorded on " + device.info().name);
  i32 value = 0;
  EXPECT_THROW(device.read(Buffer(), &value, 4), InputError);
  EXPECT_THROW(device.copy(Buffer(), out), InputError);
}

TEST_P(Launch, HandlesOfAnotherDeviceAreRefused) {
  const Device other = Device::open("interp");
  const Buffer in = other.upload(std::vector<i32>{1}), out = other.allocate<i32>({1});
  const Graph graph = other.record([&] { other.copy(in, out); });
  EXPECT_THROW(device.replay(graph), InputError);
  const Buffer own_in = device.upload(std::vector<i32>{1}), own_out = device.allocate<i32>({1});
  EXPECT_THROW(device.launch_on(other.stream(), add_scalar(), {1}, own_in, own_out, 1), InputError);
  EXPECT_THROW(device.synchronize(other.stream()), InputError);
}

TEST_P(Launch, WorkGoesToAnotherStreamAndIsFollowed) {
  const Buffer a = device.upload(std::vector<i32>{5}), b = device.allocate<i32>({1}),
               c = device.allocate<i32>({1});
  const Graph graph = device.record([&] { device.launch(add_scalar(), {1}, b, c, 10); });
  const Stream stream = device.stream();
  device.begin_after({}, stream);
  device.on(stream, [&] {
    device.launch(add_scalar(), {1}, a, b, 1);
    device.replay(graph);
  });
  device.begin_after(stream, {});
  EXPECT_EQ(device.download<i32>(c), std::vector<i32>{16});
  EXPECT_EQ(message([&] { device.record([&] { device.on(stream, [] {}); }); }),
            "Device::on inside a recording [Device::record]: expected launches, copies and clears on the "
            "default stream");
  const Device other = Device::open("interp");
  EXPECT_THROW(device.on(other.stream(), [] {}), InputError);
  EXPECT_THROW(device.begin_after(other.stream(), stream), InputError);
}

TEST_P(Launch, ARecordingRefusesWhatItCannotHold) {
  const Buffer a = device.upload(std::vector<i32>{5}), b = device.allocate<i32>({1});
  const Stream stream = device.stream();
  const Graph graph = device.record([&] { device.copy(a, b); });
  i32 value = 0;
  const auto refused = [&](const char* what, const std::function<void()>& work) {
    EXPECT_EQ(message([&] { device.record(work); }), std::string(what) + " [Device::record]: expected " +
                                                         "launches, copies and clears on the default stream");
  };
  refused("Device::read inside a recording", [&] { device.read(a, &value, 4); });
  refused("Device::write inside a recording", [&] { device.write(a, &value, 4); });
  refused("Device::replay inside a recording", [&] { device.replay(graph); });
  refused("Device::synchronize inside a recording", [&] { device.synchronize(); });
  refused("Device::seconds inside a recording", [&] { device.seconds([] {}); });
  refused("Device::launch_on on a separate stream inside a recording",
          [&] { device.launch_on(stream, add_scalar(), {1}, a, b, 1); });
  refused("Device::copy on a separate stream inside a recording", [&] { device.copy(a, b, stream); });
  EXPECT_EQ(message([&] { device.record([&] { device.record([] {}); }); }),
            "a recording inside a recording [Device::record]: expected one at a time in a thread");
  // A refusal leaves the device as it was.
  device.launch(add_scalar(), {1}, a, b, 1);
  EXPECT_EQ(device.download<i32>(b), std::vector<i32>{6});
}

TEST_P(Launch, OtherThreadsWorkOnDuringARecording) {
  const Buffer a = device.upload(std::vector<i32>{5}), b = device.allocate<i32>({1}),
               c = device.allocate<i32>({1});
  device.launch(add_scalar(), {1}, a, b, 0);
  std::vector<i32> seen;
  const Graph graph = device.record([&] {
    device.launch(add_scalar(), {1}, a, b, 1);
    std::jthread([&] {
      device.launch(add_scalar(), {1}, a, c, 2);
      seen = device.download<i32>(c);
    }).join();
  });
  EXPECT_EQ(seen, std::vector<i32>{7});
  EXPECT_EQ(device.download<i32>(b), std::vector<i32>{5});
  device.clear(c);
  device.replay(graph);
  EXPECT_EQ(device.download<i32>(b), std::vector<i32>{6});
  EXPECT_EQ(device.download<i32>(c), std::vector<i32>{0});
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

// Rows 2^30 elements apart, of which a few bytes are touched: offsets pass 2^31 though no axis does.
TEST_P(Launch, OffsetsOf64BitsAreTakenWhereABufferNeedsThem) {
  if (!device.info().limits.f64) GTEST_SKIP() << "no 64-bit integers on " << GetParam();
  if (device.info().kind == DeviceKind::interp)
    GTEST_SKIP() << "the interpreter alone is too slow: it follows every byte";
  const int64_t apart = int64_t(1) << 30;
  Buffer all;
  try {
    all = device.allocate<uint8_t>({4, apart});
  } catch (const DeviceError& error) { GTEST_SKIP() << error.what(); }
  const Buffer low = all.window({0, 0}, {4, 8}), high = all.window({0, apart - 8}, {4, 8});
  const Kernel fill = kernel("test.far", [](At<2> at, Out<uint8_t, 2> a, Param<u32> first) {
    a[at] = first + cast<u32>(at.y * 8 + at.x);
  });
  const Kernel add =
      kernel("test.far_sum", [](At<2> at, Grid<uint8_t, 2> a, Grid<uint8_t, 2> b, Out<i32, 2> sum) {
        sum[at] = cast<i32>(a[at]) + 1000 * cast<i32>(b[at]);
      });
  device.launch(fill, {4, 8}, low, 1);
  device.launch(fill, {4, 8}, high, 101);
  const Buffer sum = device.allocate<i32>({4, 8});
  device.launch(add, {4, 8}, low, high, sum);
  const std::vector<i32> sums = device.download<i32>(sum);
  for (int k = 0; k < 32; ++k) EXPECT_EQ(sums[size_t(k)], 1 + k + 1000 * (101 + k)) << k;
  std::vector<uint8_t> row(8);
  device.read(all.window({3, apart - 8}, {1, 8}), row.data(), 8);
  for (int k = 0; k < 8; ++k) EXPECT_EQ(row[size_t(k)], 101 + 24 + k);
}

TEST_P(Launch, SecondsAreThoseOfTheWorkAndNoMore) {
  using Clock = std::chrono::steady_clock;
  const Buffer in = device.upload(std::vector<i32>(100000, 1)), out = device.allocate<i32>({100000});
  const auto pause = std::chrono::milliseconds(20);
  const auto begin = Clock::now();
  const double seconds = device.seconds([&] {
    device.launch(add_scalar(), {100000}, in, out, 1);
    std::this_thread::sleep_for(pause);
    device.launch(add_scalar(), {100000}, in, out, 1);
  });
  const std::chrono::duration<double> whole = Clock::now() - begin;
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds, whole.count());
  if (device.info().kind == DeviceKind::cpu || device.info().kind == DeviceKind::interp) {
    EXPECT_GE(seconds, std::chrono::duration<double>(pause).count());
  }
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
