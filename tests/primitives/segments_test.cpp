// Reductions of segments: the bits of reduce of each alone, and sums, least and greatest elements by plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "lockstep/primitives.hpp"
#include "primitives/reference.hpp"

namespace lockstep {
namespace {

namespace prim = primitives;
using prim::Reduce;

template <class T>
std::vector<T> reduced(const Device& device, Reduce how, const std::vector<T>& x,
                       const std::vector<i32>& first) {
  const Buffer result = device.allocate<T>({int64_t(first.size()) - 1});
  prim::segmented_reduce(device, how, device.upload(x), device.upload(first), result);
  return device.download<T>(result);
}

/// Lengths around all limits between the ways in which segments are computed.
std::vector<i32> offsets(std::mt19937& random) {
  std::vector<i32> first{0};
  for (const i32 length :
       {0, 1, 4, 5, 31, 32, 33, 0, 1024, 1025, 8191, 8192, 8193, 0, 16384, 16385, 100003, 1, 0})
    first.push_back(first.back() + length);
  for (int k = 0; k < 5000; ++k) first.push_back(first.back() + i32(random() % (k % 50 == 0 ? 200u : 5u)));
  return first;
}

template <class T>
void expect_each_reduced() {
  std::mt19937 random(2);
  const std::vector<i32> first = offsets(random);
  std::vector<T> x(size_t(first.back()));
  for (T& v : x) v = std::is_floating_point_v<T> ? T(double(random()) / 1e9 - 2) : T(random());
  for (const int threads : {1, 3}) {
    DeviceOptions options;
    options.threads = threads;
    const Device device = Device::open("cpu", options);
    for (const Reduce how : {Reduce::sum, Reduce::min, Reduce::max}) {
      const auto got = reduced(device, how, x, first);
      for (size_t r = 0; r + 1 < first.size(); ++r) {
        const auto own = std::span(x).subspan(size_t(first[r]), size_t(first[r + 1] - first[r]));
        ASSERT_EQ(got[r], prim::reference::reduce<T>(prim::Chunk(int(how)), own))
            << r << " of " << own.size();
        if (own.empty()) continue;
        if (how == Reduce::min) { ASSERT_EQ(got[r], *std::ranges::min_element(own)) << r; }
        if (how == Reduce::max) { ASSERT_EQ(got[r], *std::ranges::max_element(own)) << r; }
        if constexpr (std::is_integral_v<T>) {
          if (how != Reduce::sum) continue;
          uint32_t sum = 0;
          for (const T v : own) sum += uint32_t(v);
          ASSERT_EQ(uint32_t(got[r]), sum) << r;
        }
      }
    }
  }
}

TEST(SegmentedReduce, GivesTheBitsOfReduceOfEachSegment) {
  expect_each_reduced<f32>();
  expect_each_reduced<f64>();
  expect_each_reduced<i32>();
  expect_each_reduced<u32>();
}

TEST(SegmentedReduce, OfOneLongSegmentHasTheBitsOfReduce) {
  const Device device = Device::open("cpu");
  const int64_t count = prim::kReduceChunk * prim::kReduceChunk + 5;
  const Buffer x = device.allocate<f32>({count}), result = device.allocate<f32>({2});
  prim::fill(device, x, 0.1);
  prim::segmented_reduce(device, Reduce::sum, x, device.upload(std::vector<i32>{0, 3, i32(count)}), result);
  EXPECT_EQ(device.download<f32>(result)[1], prim::sum<f32>(device, x.window({3}, {count - 3})));
}

// The shortest segments that one lane does not reduce, and the shortest of two chunks: no list has more entries of as many
// elements.
TEST(SegmentedReduce, TakesAsManySegmentsAsElementsAllow) {
  const Device device = Device::open("cpu");
  for (const i32 length : {33, i32(prim::kReduceChunk) + 1}) {
    constexpr i32 kSegments = 200;
    std::vector<i32> first;
    for (i32 k = 0; k <= kSegments; ++k) first.push_back(k * length);
    const auto got = reduced(device, Reduce::sum, std::vector<u32>(size_t(first.back()), 1u), first);
    EXPECT_EQ(got, std::vector<u32>(size_t(kSegments), u32(length))) << length;
  }
}

TEST(SegmentedReduce, EmptySegmentsSignedZerosAndNan) {
  for (const char* name : {"cpu", "interp"}) {
    const Device device = Device::open(name);
    constexpr f32 kInfinity = std::numeric_limits<f32>::infinity();
    const std::vector<f32> none;
    const std::vector<i32> nothing{0, 0, 0};
    EXPECT_EQ(reduced(device, Reduce::sum, none, nothing), (std::vector<f32>{0, 0}));
    EXPECT_FALSE(std::signbit(reduced(device, Reduce::sum, none, nothing)[0]));
    EXPECT_EQ(reduced(device, Reduce::min, none, nothing), (std::vector<f32>{kInfinity, kInfinity}));
    EXPECT_EQ(reduced(device, Reduce::max, std::vector<i32>{}, nothing), std::vector<i32>(2, INT32_MIN));
    EXPECT_EQ(reduced(device, Reduce::sum, none, {0}), none);
    const std::vector<f32> zeros(40, -0.0f);
    EXPECT_TRUE(std::signbit(reduced(device, Reduce::sum, zeros, {0, 3, 40})[0]));
    EXPECT_TRUE(std::signbit(reduced(device, Reduce::sum, zeros, {0, 3, 40})[1]));
    for (const int at : {0, 1, 30, 34, 35, 99, 9000, 20000}) {
      std::vector<f32> x(20001, 1.0f);
      x[size_t(at)] = std::numeric_limits<f32>::quiet_NaN();
      const std::vector<i32> first{0, 1, 31, 35, 100, 9001, 20001};
      for (const Reduce how : {Reduce::sum, Reduce::min, Reduce::max}) {
        const auto got = reduced(device, how, x, first);
        for (size_t r = 0; r < got.size(); ++r)
          EXPECT_EQ(std::isnan(got[r]), first[r] <= at && at < first[r + 1]) << at << ", " << r;
      }
    }
  }
}

TEST(SegmentedReduce, ReadsNothingOutsideForAnyOffsets) {
  const Device device = Device::open("interp");  // reports accesses outside of a buffer
  const std::vector<i32> x(20000, 1);
  EXPECT_EQ(reduced(device, Reduce::sum, x, {-5, 3, 10, 30000}), (std::vector<i32>{3, 7, 19990}));
  EXPECT_EQ(reduced(device, Reduce::sum, x, {7, 3, INT32_MAX}), (std::vector<i32>{0, 19997}));
  std::vector<i32> repeated;
  for (int k = 0; k < 700; ++k) repeated.push_back(k % 2 ? 9000 : 0);
  reduced(device, Reduce::sum, x, repeated);
  for (int k = 0; k < 700; ++k) repeated[size_t(k)] = k % 2 ? 100 : 0;
  reduced(device, Reduce::sum, std::vector<i32>(120, 1), repeated);
}

TEST(SegmentedReduce, IsRecordedAndRefusesWrongBuffers) {
  const Device device = Device::open("cpu");
  std::vector<i32> x(10000, 2);
  const Buffer from = device.upload(x), first = device.upload(std::vector<i32>{0, 9000, 10000}),
               result = device.allocate<i32>({2});
  const Graph graph =
      device.record([&] { prim::segmented_reduce(device, Reduce::sum, from, first, result); });
  x[5] = 100;
  device.write(from, x.data(), from.bytes());
  device.replay(graph);
  EXPECT_EQ(device.download<i32>(result), (std::vector<i32>{18098, 2000}));

  const auto refused = [&](const Buffer& values, const Buffer& offsets, const Buffer& to) {
    EXPECT_THROW(prim::segmented_reduce(device, Reduce::sum, values, offsets, to), InputError);
  };
  refused({}, first, result);
  refused(from, {}, result);
  refused(from, first, {});
  refused(from, first, device.allocate<i32>({3}));
  refused(from, first, device.allocate<f32>({2}));
  refused(from, device.allocate<u32>({3}), result);
  refused(device.allocate<f16>({4}), first, device.allocate<f16>({2}));
  refused(from, first, from.rows(0, 2));
  refused(from, first, first.rows(0, 2));
}

}  // namespace
}  // namespace lockstep
