// Checked launches: what the interpreter sees of an ordinary program on its own device and data.
#include "device/launch/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "devices.hpp"
#include "lockstep/check.hpp"
#include "lockstep/native.hpp"

namespace lockstep {
namespace {

using device::disturb_checked_results;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using G1 = Grid<f32, 1>;
using O1 = Out<f32, 1>;

/// A CPU device with checks on; nothing stays behind.
class Checked : public testing::Test {
 protected:
  void SetUp() override {
    clear_check_findings();
    try {
      device = Device::open("cpu");
    } catch (const UnsupportedError& e) { GTEST_SKIP() << e.what(); }
    check_launches(device, 1);
  }
  void TearDown() override {
    device::disturb_checked_results(nullptr);
    check_launches(0);
    collect_check_findings(false);
    clear_check_findings();
  }
  std::string error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const CheckError& e) { return e.what(); }
    return "no error";
  }
  Device device;
};

TEST_F(Checked, ReadsOutsideAreReportedBeforeTheDeviceRuns) {
  const Buffer x = device.upload(std::vector<f32>(20, 1.0f)), y = device.allocate<f32>({10});
  // As far as this, the CPU would not come back.
  const Kernel far = kernel("c.far", [](At<1> at, G1 a, O1 b) { b[at] = a[at.x + 500000000]; });
  const int line = __LINE__ - 1;
  const std::string error = error_of([&] { device.launch(far, {10}, x, y); });
  EXPECT_THAT(error, HasSubstr("kernel c.far: 10 accesses out of bounds"));
  EXPECT_THAT(error, HasSubstr("check_test.cpp:" + std::to_string(line)));
  EXPECT_THAT(error, HasSubstr("launched near check_test.cpp:" + std::to_string(line + 2)));
}

TEST_F(Checked, RacesAndFalseUniformClaimsAreReported) {
  const Buffer x = device.upload(std::vector<f32>(64, 1.0f)), y = device.upload(std::vector<f32>(64));
  const Kernel race = kernel("c.race", [](At<1> at, G1 a, O1 b) { b[at.x / 2] = a[at] * cast<f32>(at.x); });
  EXPECT_THAT(error_of([&] { device.launch(race, {64}, x, y); }), HasSubstr("races between lanes"));
  const Kernel claim = kernel("c.claim",
                              [](Group<1> g, O1 b) {
                                const Val<i32> n = uniform(g.lane() / 32);
                                b[g.global()] = cast<f32>(n);
                              },
                              {.group = {64}});
  EXPECT_THAT(error_of([&] { device.launch(claim, {1}, y); }), HasSubstr("uniform() values"));
}

TEST_F(Checked, MemoryIsUninitialisedUntilItIsWritten) {
  const Buffer x = device.allocate<f32>({10}), y = device.allocate<f32>({10}),
               bytes = device.allocate<uint8_t>({64}), wide = device.allocate<f64>({7});
  const Kernel copy = kernel("c.copy", [](At<1> at, G1 a, O1 b) { b[at] = a[at]; });
  EXPECT_THAT(error_of([&] { device.launch(copy, {10}, x, y); }),
              HasSubstr("10 reads of uninitialised memory"));
  device.write(x.rows(0, 9), std::vector<f32>(9).data(), 36);
  EXPECT_THAT(error_of([&] { device.launch(copy, {10}, x, y); }),
              HasSubstr("1 reads of uninitialised memory"));
  device.launch(copy, {9}, x, y);
  device.clear(bytes);
  device.launch(kernel("c.bytes", [](At<1> at, Grid<uint8_t, 1> a, O1 b) { b[at] = cast<f32>(a[at]); }), {10},
                bytes, y);
  EXPECT_THAT(error_of([&] {
                device.launch(
                    kernel("c.wide", [](At<1> at, Grid<f64, 1> a, O1 b) { b[at] = cast<f32>(a[at]); }), {7},
                    wide, y);
              }),
              HasSubstr("7 reads of uninitialised memory"));
}

TEST_F(Checked, FreedMemoryIsUninitialisedAgain) {
  const Kernel copy = kernel("c.again", [](At<1> at, G1 a, O1 b) { b[at] = a[at]; });
  const Buffer y = device.allocate<f32>({10});
  { const Buffer x = device.upload(std::vector<f32>(10, 2.0f)); }
  const Buffer x = device.allocate<f32>({10});
  EXPECT_THAT(error_of([&] { device.launch(copy, {10}, x, y); }), HasSubstr("uninitialised"));
}

TEST_F(Checked, RightKernelsPassAndTheirResultsAreTheDevices) {
  std::vector<f32> values(1000);
  for (size_t k = 0; k < values.size(); ++k) values[k] = f32(k) * 0.37f - 50;
  const Buffer x = device.upload(values), y = device.allocate<f32>({1000}),
               n = device.upload(std::vector<i32>(4));
  const Kernel wave = kernel("c.wave", [](At<1> at, G1 a, O1 b) { b[at] = sin(a[at]) / (a[at] - 3.0f); });
  const Kernel count = kernel("c.count", [](At<1> at, InOut<i32, 1> c) { c[at.x % 4].atomic_add(1); });
  device.launch(wave, {1000}, x, y);
  device.launch(count, {1000}, n);
  device.launch(wave, {10}, x.rows(20, 10), y.rows(5, 10));
  EXPECT_EQ(checked_launches(), 3);
  EXPECT_THAT(check_findings(), IsEmpty());
  EXPECT_THAT(device.download<i32>(n), ElementsAre(250, 250, 250, 250));
}

TEST_F(Checked, DifferingBitsAreReported) {
  const Buffer x = device.upload(std::vector<f32>{1, 2, 3, 4});
  const Kernel twice = kernel("c.twice", [](At<1> at, InOut<f32, 1> a) { a[at] *= 2.0f; });
  const int line = __LINE__ - 1;
  const auto launch_with = [&](f32 wrong) {
    disturb_checked_results([&](uint8_t* result) { std::memcpy(result + 8, &wrong, 4); });
    device.launch(twice, {4}, x);
  };
  EXPECT_EQ(error_of([&] { launch_with(6.0f); }), "no error");
  const std::string error = error_of([&] { launch_with(12.000001f); });
  EXPECT_THAT(error, HasSubstr("kernel c.twice: 1 elements of b0"));
  EXPECT_THAT(error, HasSubstr("differ in their bits between cpu and the interpreter, first (2)"));
  EXPECT_THAT(error, HasSubstr("check_test.cpp:" + std::to_string(line)));
}

TEST_F(Checked, CollectedFindingsLetTheProgramGoOn) {
  collect_check_findings(true);
  const Buffer x = device.upload(std::vector<f32>{1, 2, 3, 4}), y = device.upload(std::vector<f32>(4, 9.0f));
  const Kernel next = kernel("c.next", [](At<1> at, G1 a, O1 b) { b[at] = a[at.x + 1]; });
  for (int k = 0; k < 3; ++k) device.launch(next, {4}, x, y);
  EXPECT_THAT(device.download<f32>(y), ElementsAre(2, 3, 4, 0));
  const std::vector<CheckFinding> found = check_findings();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].kind, "out_of_bounds");
  EXPECT_EQ(found[0].kernel, "c.next");
  EXPECT_EQ(found[0].launches, 3);
  EXPECT_THAT(found[0].place, HasSubstr("check_test.cpp:"));
}

TEST_F(Checked, EveryNthLaunch) {
  const Buffer y = device.upload(std::vector<f32>(4));
  const Kernel set = kernel("c.set", [](At<1> at, O1 b) { b[at] = 1.0f; });
  check_launches(device, 3);
  for (int k = 0; k < 7; ++k) device.launch(set, {4}, y);
  EXPECT_EQ(checked_launches(), 3);
}

TEST_F(Checked, LaunchesOfAGraphWithNewNumbers) {
  const Buffer x = device.upload(std::vector<f32>{1, 2, 3, 4}), y = device.upload(std::vector<f32>(4));
  const Kernel at_place = kernel("c.place", [](At<1> at, G1 a, O1 b, Param<i32> n) { b[at] = a[n]; });
  const Graph graph = device.record([&] { device.launch(at_place, {4}, x, y, per_replay("n", 3)); });
  EXPECT_EQ(checked_launches(), 0);
  device.replay(graph);
  EXPECT_EQ(checked_launches(), 1);
  EXPECT_THAT(device.download<f32>(y), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(error_of([&] { device.replay(graph, Arguments().set("n", 4)); }), HasSubstr("out of bounds"));
  EXPECT_EQ(error_of([&] { device.replay(graph, Arguments().set("n", 0)); }), "no error");
  EXPECT_THAT(device.download<f32>(y), ElementsAre(1, 1, 1, 1));
}

TEST_F(Checked, GraphsRecordedBeforeAreSaidToBeUnchecked) {
  check_launches(device, 0);
  const Buffer y = device.upload(std::vector<f32>(4));
  const Kernel set = kernel("c.before", [](At<1> at, O1 b) { b[at] = 1.0f; });
  const Graph graph = device.record([&] { device.launch(set, {4}, y); });
  check_launches(1);
  device.replay(graph);
  device.replay(graph);
  ASSERT_THAT(unchecked_launches(), SizeIs(1));
  EXPECT_EQ(unchecked_launches()[0].count, 2);
  EXPECT_EQ(unchecked_launches()[0].what, "graphs of cpu");
}

TEST_F(Checked, FastNumericsAreCheckedForFaultsAlone) {
  const Device fast = Device::open("cpu", {.numerics = Numerics::fast});
  check_launches(fast, 1);
  std::vector<f32> values(500);
  for (size_t k = 0; k < values.size(); ++k) values[k] = f32(k) * 0.71f;
  const Buffer x = fast.upload(values), y = fast.allocate<f32>({500});
  const Kernel wave = kernel("c.fast", [](At<1> at, G1 a, O1 b) { b[at] = exp(sin(a[at])); });
  EXPECT_EQ(error_of([&] { fast.launch(wave, {500}, x, y); }), "no error");
  EXPECT_EQ(checked_launches(), 1);
}

TEST_F(Checked, OverlappingWindowsOfOneMemoryKeepTheirElements) {
  const Buffer whole = device.upload(std::vector<f32>{1, 2, 3, 4, 5, 6, 7, 8}).reshape({2, 4});
  const Buffer left = whole.window({0, 0}, {2, 2}), right = whole.window({0, 2}, {2, 2});
  collect_check_findings(true);
  // Out of bounds in rows: the interpreter's results are written, the elements next to them are unchanged.
  const Kernel shift =
      kernel("c.shift", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> b) { b[at] = a(at.y, at.x + 1); });
  device.launch(shift, {2, 2}, left, right);
  EXPECT_THAT(device.download<f32>(whole.reshape({8})), ElementsAre(1, 2, 2, 0, 5, 6, 6, 0));
}

TEST(CheckLaunches, NegativeCountsAreRefused) { EXPECT_THROW(check_launches(-1), InputError); }

}  // namespace
}  // namespace lockstep
