// Words of the kernel language as authors write them, on the interpreter and the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "device/devices.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) { return e.what(); }
  return "";
}

/// The numbers that `body(lane, out)` writes for lanes 0 to count - 1, the same on both devices.
template <class T, class Body>
std::vector<T> lanes(int64_t count, Body body) {
  const Kernel k = kernel("test.words", [&](At<1> at, Out<T, 1> out) { body(at, out); });
  std::vector<std::vector<T>> results;
  for (const std::string& name : host_devices()) {
    const Device& device = test_device(name);
    const Buffer out = device.allocate<T>({count});
    device.launch(k, {count}, out);
    results.push_back(device.download<T>(out));
  }
  EXPECT_EQ(results.front(), results.back());
  return results[0];
}

TEST(Words, SelectTakesNumbers) {
  EXPECT_THAT(lanes<f32>(3, [](At<1> at, Out<f32, 1> out) { out[at] = select(at.x > 1, 1.5f, -2.0f); }),
              ElementsAre(-2.0f, -2.0f, 1.5f));
  EXPECT_THAT(lanes<i32>(3, [](At<1> at, Out<i32, 1> out) { out[at] = select(at.x > 1, at.x, 7); }),
              ElementsAre(7, 7, 2));
  EXPECT_THAT(lanes<f32>(2,
                         [](At<1> at, Out<f32, 1> out) {
                           const Val<f32> x = cast<f32>(at.x) + 1.0f;
                           const Vec2<f32> v = select(at.x > 0, Vec2<f32>(x, x * 2.0f), 0.5f);
                           out[at] = v.x() + v.y();
                         }),
              ElementsAre(1.0f, 6.0f));
}

TEST(Words, VectorsAndArraysOfVariables) {
  EXPECT_THAT(lanes<f32>(2,
                         [](At<1> at, Out<f32, 1> out) {
                           VarVec<f32, 3> v = Vec3<f32>(1.0f, 2.0f, 3.0f);
                           for_(0, 3, [&](Val<i32>) {
                             v += Vec3<f32>(1.0f, 0.0f, -1.0f);
                             v *= 2.0f;
                           });
                           v -= v;
                           v += Vec3<f32>(cast<f32>(at.x), 4.0f, 9.0f);
                           out[at] = dot(Vec3<f32>(v), Vec3<f32>(1.0f, 10.0f, 100.0f));
                         }),
              ElementsAre(940.0f, 941.0f));
  EXPECT_THAT(lanes<i32>(3,
                         [](At<1> at, Out<i32, 1> out) {
                           VarArray<i32, 4> a([](int k) { return k; });
                           for_(0, at.x, [&](Val<i32>) {
                             for (int k = 0; k < a.size(); ++k) a[k] += a[(k + 1) % 4];
                           });
                           out[at] = a[0] + 10 * a[1] + 100 * a[2] + 1000 * a[3];
                         }),
              ElementsAre(3210, 0 + 1 + 10 * 3 + 100 * 5 + 1000 * (3 + 1), 4 + 10 * 8 + 100 * 9 + 1000 * 8));
  EXPECT_THAT(message_of([] {
                kernel("test.array", [](At<1> at, Out<f32, 1> out) {
                  VarArray<f32, 4> a(0.0f);
                  out[at] = a[4];
                });
              }),
              AllOf(HasSubstr("test.array"), HasSubstr("words_test.cpp"), HasSubstr("0 to 3")));
}

TEST(Words, ElementsTakeAllAssignments) {
  EXPECT_THAT(lanes<i32>(2,
                         [](At<1> at, Out<i32, 1> out) {
                           LocalArray<i32> a(2);
                           a[at.x] = 13;
                           a[at.x] += 2;   // 15
                           a[at.x] /= 2;   // 7
                           a[at.x] %= 4;   // 3
                           a[at.x] <<= 4;  // 48
                           a[at.x] |= 7;   // 55
                           a[at.x] ^= 1;   // 54
                           a[at.x] >>= 1;  // 27
                           a[at.x] &= 26;
                           out[at] = a[at.x];
                         }),
              ElementsAre(26, 26));
}

TEST(Words, BoundaryRulesHoldForCoordinates) {
  const Kernel k = kernel("test.rules", [](At<1> at, Grid<f32, 2> in, Out<f32, 2> out) {
    const Val<i32> y = at.x - 4, x = 3 - at.x;
    out(0, at.x) = in.clamped()(y, x);
    out(1, at.x) = in.periodic()(y, x);
    out(2, at.x) = in.zero()(y, x);
  });
  std::vector<f32> in(6);
  std::iota(in.begin(), in.end(), 1.0f);  // 2 rows of 3
  const auto at = [&](int y, int x) { return in[size_t(y * 3 + x)]; };
  for (const std::string& name : host_devices()) {
    const Device& device = test_device(name);
    const Buffer a = device.upload(std::span<const f32>(in), {2, 3}), b = device.allocate<f32>({3, 9});
    device.launch(k, {9}, a, b);
    const std::vector<f32> got = device.download<f32>(b);
    for (int n = 0; n < 9; ++n) {
      const int y = n - 4, x = 3 - n;
      EXPECT_EQ(got[size_t(n)], at(std::clamp(y, 0, 1), std::clamp(x, 0, 2))) << name << n;
      EXPECT_EQ(got[size_t(9 + n)], at((y + 8) % 2, (x + 9) % 3)) << name << n;
      EXPECT_EQ(got[size_t(18 + n)], y >= 0 && y < 2 && x >= 0 && x < 3 ? at(y, x) : 0) << name << n;
    }
  }
}

TEST(Words, ErrorsNameTheLine) {
  const int first = __LINE__;
  const std::string said = message_of([] {
    kernel("test.lines",
           [](Group<1> g, Out<f32, 1> out) {
             if_(g.lane() == 0, [&] { barrier(); });  // line first + 4
             out(g.lane()) = 1.0f;
           },
           {.group = {8}});
  });
  EXPECT_THAT(said, AllOf(HasSubstr("test.lines"), HasSubstr("words_test.cpp:" + std::to_string(first + 4))));
  const std::string constant = message_of([] {
    kernel("test.constant", [](At<1> at, Out<i32, 1> out) {
      Var<i32> n = at.x;
      out[at] = n * 0.5;
    });
  });
  EXPECT_THAT(constant, AllOf(HasSubstr("test.constant"), HasSubstr("words_test.cpp:")));
  const Kernel outside = kernel("test.outside", [](At<1> at, Grid<f32, 1> in, Out<f32, 1> out) {
    out[at] = 0.0f;
    out[at] = in(at.x + 1);  // of 4 elements
  });
  const Device interp = Device::open("interp");
  const Buffer in = interp.upload(std::vector<f32>(4)), out = interp.allocate<f32>({4});
  EXPECT_THAT(message_of([&] { interp.launch(outside, {4}, in, out); }),
              AllOf(HasSubstr("test.outside"), HasSubstr("out of bounds"), HasSubstr("words_test.cpp:")));
}

TEST(Words, ChecksAndPrints) {
  const Kernel k = kernel("test.checks", [](At<2> at, Grid<f32, 2> in, Out<f32, 2> out, Param<f32> most) {
    const Val<f32> v = in[at];
    check(v <= most, "value within its range", v);
    print_if(v == 5.0f, "here is", at.x);
    out[at] = v;
  });
  EXPECT_EQ(k.parameters().size(), 3u);
  std::vector<f32> values(12);
  std::iota(values.begin(), values.end(), 0.0f);
  for (const std::string& name : test_devices()) {
    const Device& device = test_device(name);
    const Buffer in = device.upload(std::span<const f32>(values), {3, 4}), out = device.allocate<f32>({3, 4});
    testing::internal::CaptureStderr();
    device.launch(k, {3, 4}, in, out, 100.0f);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr("words_test.cpp:"), HasSubstr("test.checks"), HasSubstr("point (1, 1)"),
                      HasSubstr("here is 1")));
    EXPECT_EQ(device.download<f32>(out), values) << name;
    testing::internal::CaptureStderr();
    const std::string said = message_of([&] { device.launch(k, {3, 4}, in, out, 8.5f); });
    testing::internal::GetCapturedStderr();
    EXPECT_THAT(said,
                AllOf(HasSubstr("value within its range 9"), HasSubstr("3 lanes"), HasSubstr("point (1, 2)"),
                      HasSubstr("words_test.cpp:"), HasSubstr("test.checks")));
    // A recording reads the reports of each replay.
    const Graph graph = device.record([&] { device.launch(k, {3, 4}, in, out, 8.5f); });
    testing::internal::CaptureStderr();
    EXPECT_THAT(message_of([&] { device.replay(graph); }), HasSubstr("value within its range 9"));
    testing::internal::GetCapturedStderr();
  }
}

}  // namespace
}  // namespace lockstep
