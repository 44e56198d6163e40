// Threads, unaligned windows, several rows of the flat view, NaN, signed zeros, errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "lockstep/primitives.hpp"
#include "primitives/flat.hpp"
#include "primitives/reference.hpp"
#include "primitives/sums/chunked_sum.hpp"

namespace lockstep {
namespace {

namespace prim = primitives;
using prim::Chunk;

Device cpu(int threads = 0) {
  DeviceOptions options;
  options.threads = threads;
  return Device::open("cpu", options);
}

std::vector<f32> waves(size_t count) {
  std::vector<f32> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = std::sin(float(i) * 0.37f) * float(1 + i % 7);
  return x;
}

/// Rows of 8192 or 16384 elements while it lives: several rows without 2^31 elements.
class ShortRows {
 public:
  explicit ShortRows(int64_t row) : before_(prim::flat_row()) { prim::set_flat_row(row); }
  ~ShortRows() { prim::set_flat_row(before_); }

 private:
  int64_t before_;
};

TEST(Reduce, GivesOneValueForAnyThreadCountAndRowLength) {
  const auto x = waves(100003);
  const f32 expected = prim::reference::reduce<f32>(Chunk::sum, x);
  for (const int threads : {1, 2, 3}) {
    const Device device = cpu(threads);
    EXPECT_EQ(prim::sum<f32>(device, device.upload(x)), expected) << threads;
  }
  const Device device = cpu();
  const Buffer b = device.upload(x);
  for (const int64_t row : {8192, 16384, 65536}) {
    const ShortRows rows(row);
    EXPECT_EQ(prim::sum<f32>(device, b), expected) << row;
    EXPECT_EQ(prim::dot<f32>(device, b, b), prim::reference::reduce<f32>(Chunk::dot, x, x)) << row;
  }
}

TEST(Reduce, ReadsUnalignedWindows) {
  const auto x = waves(20001);
  const Device device = cpu();
  const Buffer whole = device.upload(x);
  for (int64_t shift = 0; shift < 5; ++shift) {
    const std::vector<f32> part(x.begin() + shift, x.end());
    EXPECT_EQ(prim::sum<f32>(device, whole.window({shift}, {20001 - shift})),
              prim::reference::reduce<f32>(Chunk::sum, part))
        << shift;
  }
}

TEST(Reduce, EmptyAndSpecialValues) {
  const Device device = cpu();
  const Buffer none = device.allocate<f32>({0});
  EXPECT_EQ(prim::sum<f32>(device, none), 0.0f);
  EXPECT_EQ(prim::min<f32>(device, none), std::numeric_limits<f32>::infinity());
  EXPECT_EQ(prim::max<i32>(device, device.allocate<i32>({0})), std::numeric_limits<i32>::lowest());
  EXPECT_TRUE(std::signbit(prim::sum<f32>(device, device.upload(std::vector<f32>{-0.0f, -0.0f}))));

  std::vector<f32> x = waves(9000);
  for (const size_t at : {size_t(0), size_t(8191), size_t(8999)}) {
    auto y = x;
    y[at] = std::numeric_limits<f32>::quiet_NaN();
    const Buffer b = device.upload(y);
    EXPECT_TRUE(std::isnan(prim::min<f32>(device, b))) << at;
    EXPECT_TRUE(std::isnan(prim::max<f32>(device, b))) << at;
    EXPECT_TRUE(std::isnan(prim::sum<f32>(device, b))) << at;
    y[at] = std::numeric_limits<f32>::infinity();
    const Buffer infinite = device.upload(y);
    EXPECT_EQ(prim::max<f32>(device, infinite), y[at]) << at;
    EXPECT_EQ(prim::min<f32>(device, infinite), *std::min_element(y.begin(), y.end())) << at;
  }
  EXPECT_EQ(prim::norm<f64>(device, device.upload(std::vector<f64>{3, 4})), 5.0);
  EXPECT_EQ(prim::sum<u32>(device, device.upload(std::vector<u32>{0xffffffffu, 2u})), 1u);
}

TEST(Reduce, IsRecordedWithItsScratchMemory) {
  const Device device = cpu();
  std::vector<f32> x = waves(70001);
  const Buffer b = device.upload(x), result = device.allocate<f32>({1});
  const Graph graph = device.record([&] { prim::reduce(device, prim::Reduce::sum, b, result); });
  for (int round = 0; round < 3; ++round) {
    x[size_t(round) * 30000] += 1000.0f;
    device.write(b, x.data(), b.bytes());
    device.replay(graph);
    EXPECT_EQ(device.download<f32>(result)[0], prim::reference::reduce<f32>(Chunk::sum, x)) << round;
  }
}

/// Lane l of 256 adds the elements l, l + 256 …; then a tree over the lanes.
f64 strided(std::span<const f64> x) {
  std::vector<f64> lanes(prim::kSumLanes, 0.0);
  for (size_t i = 0; i < x.size(); ++i) lanes[i % lanes.size()] += x[i];
  for (size_t half = lanes.size() / 2; half > 0; half /= 2)
    for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

TEST(ChunkedSum, AddsInItsOrderAndIsRecorded) {
  const Device device = cpu();
  for (const size_t count : {1u, 255u, 2048u, 2049u, 700001u}) {
    std::vector<f64> x(count), chunks;
    for (size_t i = 0; i < count; ++i) x[i] = std::sin(double(i) * 0.37) * double(1 + i % 7);
    for (size_t i = 0; i < count; i += size_t(prim::kSumChunk))
      chunks.push_back(strided(std::span(x).subspan(i, std::min(count - i, size_t(prim::kSumChunk)))));
    const Buffer b = device.upload(x), result = device.allocate<f64>({1});
    const prim::ChunkedSum sum(device, Storage::f64, int64_t(count));
    const Graph graph = device.record([&] { sum.launch(b, result); });
    device.replay(graph);
    EXPECT_EQ(device.download<f64>(result)[0], count > size_t(prim::kSumChunk) ? strided(chunks) : chunks[0])
        << count;
  }
}

TEST(Primitives, MatchTheReferenceForRandomCounts) {
  const Device device = cpu();
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const size_t count = 1 + random() % (round % 4 == 0 ? 60000u : 9000u);
    const auto x = waves(count);
    std::vector<u32> heads(count);
    for (u32& h : heads) h = random() % 500 == 0;
    const Buffer b = device.upload(x), to = device.allocate<f32>({int64_t(count)});
    EXPECT_EQ(prim::sum<f32>(device, b), prim::reference::reduce<f32>(Chunk::sum, x)) << count;
    EXPECT_EQ(prim::max<f32>(device, b), prim::reference::reduce<f32>(Chunk::max, x)) << count;
    prim::exclusive_scan(device, b, to);
    EXPECT_EQ(device.download<f32>(to), prim::reference::scan<f32>(x, {}, true)) << count;
    prim::segmented_scan(device, b, device.upload(heads), to);
    EXPECT_EQ(device.download<f32>(to), prim::reference::scan<f32>(x, heads, false)) << count;
  }
}

TEST(Scan, SeveralRowsAndUnalignedWindows) {
  const auto x = waves(40000);
  const Device device = cpu();
  const Buffer whole = device.upload(x), to = device.allocate<f32>({40001});
  const auto expected = prim::reference::scan<f32>(x, {}, false);
  {
    const ShortRows rows(8192);
    prim::inclusive_scan(device, whole, to.window({0}, {40000}));
    EXPECT_EQ(device.download<f32>(to.window({0}, {40000})), expected);
  }
  prim::inclusive_scan(device, whole, to.window({1}, {40000}));
  EXPECT_EQ(device.download<f32>(to.window({1}, {40000})), expected);
}

TEST(Scan, OfIntegersIsTheRunningSum) {
  std::vector<i32> x(30011);
  std::iota(x.begin(), x.end(), -500);
  const Device device = cpu();
  const Buffer from = device.upload(x), to = device.allocate<i32>({30011});
  std::vector<i32> running(x.size());
  std::inclusive_scan(x.begin(), x.end(), running.begin());
  prim::inclusive_scan(device, from, to);
  EXPECT_EQ(device.download<i32>(to), running);
  std::exclusive_scan(x.begin(), x.end(), running.begin(), 0);
  prim::exclusive_scan(device, from, to);
  EXPECT_EQ(device.download<i32>(to), running);
}

TEST(Scan, OfSegmentsIsEachSegmentsRunningSum) {
  std::vector<i32> x(30011), running(x.size());
  std::vector<u32> heads(x.size());
  std::iota(x.begin(), x.end(), 3);
  for (size_t at : {5, 6, 1023, 1024, 4096, 4100, 20000, 30010}) heads[at] = u32(at);
  i32 sum = 0;
  for (size_t i = 0; i < x.size(); ++i) running[i] = sum = heads[i] ? x[i] : sum + x[i];
  const Device device = cpu();
  const Buffer to = device.allocate<i32>({30011});
  prim::segmented_scan(device, device.upload(x), device.upload(heads), to);
  EXPECT_EQ(device.download<i32>(to), running);
}

TEST(Elements, CopyOfWindowsScaleMultiply) {
  const Device device = cpu();
  std::vector<f32> x(12);
  std::iota(x.begin(), x.end(), 0.0f);
  const Buffer from = device.upload(std::span<const f32>(x), {3, 4}), to = device.allocate<f32>({2, 2});
  prim::copy(device, from.window({1, 2}, {2, 2}), to);
  EXPECT_EQ(device.download<f32>(to), (std::vector<f32>{6, 7, 10, 11}));
  prim::scale(device, -2, to);
  EXPECT_EQ(device.download<f32>(to), (std::vector<f32>{-12, -14, -20, -22}));
  const Buffer square = device.allocate<f32>({2, 2});
  prim::multiply(device, to, to, square);
  EXPECT_EQ(device.download<f32>(square), (std::vector<f32>{144, 196, 400, 484}));
  const ShortRows rows(8192);
  const Buffer large = device.allocate<i32>({20000});
  prim::fill(device, large, 7);
  EXPECT_EQ(prim::sum<i32>(device, large), 140000);
}

/// Ranges whose length, or whose bins in a unit of length, no T holds: the middles of all bins fall into them.
template <class T>
void histogram_of_middles(T low, T high, int bins) {
  const Device device = cpu();
  std::vector<T> middles;
  const long double step = (static_cast<long double>(high) - low) / bins;
  for (int k = 0; k < bins; ++k) middles.push_back(T(low + step * (k + 0.5L)));
  const Buffer counts = device.allocate<u32>({bins});
  prim::histogram(device, device.upload(middles), low, high, counts);
  EXPECT_EQ(device.download<u32>(counts), std::vector<u32>(size_t(bins), 1)) << low << " to " << high;
  prim::histogram(device, device.upload(std::vector<T>{low, high}), low, high, counts);
  std::vector<u32> ends(size_t(bins), 0);
  ++ends.front(), ++ends.back();
  EXPECT_EQ(device.download<u32>(counts), ends) << low << " to " << high;
}

TEST(Primitives, HistogramsOverTheWholeRangeOfATypeAndOverItsLeast) {
  const auto ranges = []<class T>(T) {
    const T most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::denorm_min();
    for (const int bins : {1, 2, 3, 4, 7, 100, 1000}) {
      histogram_of_middles<T>(-most, most, bins);
      histogram_of_middles<T>(0, most, bins);
      histogram_of_middles<T>(-most, most / 2, bins);
      histogram_of_middles<T>(most / 4, most, bins);
      histogram_of_middles<T>(0, least * 65536, bins);
      histogram_of_middles<T>(-1, 1, bins);
    }
    histogram_of_middles<T>(0, least, 1);
    histogram_of_middles<T>(-least, least, 1);
  };
  ranges(f32());
  ranges(f64());
}

TEST(Primitives, RefuseWrongBuffers) {
  const Device device = cpu();
  const Buffer f = device.allocate<f32>({4}), d = device.allocate<f64>({4}), i = device.allocate<i32>({4}),
               one = device.allocate<f32>({1});
  EXPECT_THROW(prim::axpy(device, 1, f, d), InputError);
  EXPECT_THROW(prim::axpy(device, 1, i, i), InputError);
  EXPECT_THROW(prim::reduce(device, prim::Reduce::sum, f, d), InputError);
  EXPECT_THROW(prim::reduce(device, prim::Reduce::sum, Buffer(), one), InputError);
  EXPECT_THROW(prim::sum<f64>(device, f), InputError);
  EXPECT_THROW(prim::fill(device, i, 1.5), InputError);
  EXPECT_THROW(prim::transpose(device, f.reshape({2, 2}), device.allocate<f32>({4, 1})), InputError);
  EXPECT_THROW(prim::inclusive_scan(device, f, one), InputError);
  EXPECT_THROW(prim::segmented_scan(device, f, i, f), InputError);
  EXPECT_THROW(prim::histogram(device, f, i), InputError);
  EXPECT_THROW(prim::histogram(device, f, 1, 1, device.allocate<u32>({3})), InputError);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(prim::histogram(device, f, 0, infinity, device.allocate<u32>({3})), InputError);
  EXPECT_THROW(prim::histogram(device, f, -infinity, 0, device.allocate<u32>({3})), InputError);
  EXPECT_THROW(prim::histogram(device, f, 0, 1e300, device.allocate<u32>({3})),
               InputError);  // infinite as f32
  EXPECT_THROW(prim::histogram(device, f, 1, 1 + 1e-12, device.allocate<u32>({3})),
               InputError);  // empty as f32
  EXPECT_THROW(
      prim::reduce(device, prim::Reduce::sum, device.allocate<f32>({4, 4}).window({0, 0}, {4, 2}), one),
      InputError);
}

TEST(Matmul, SixteenBitsGoToTheirOwnStorageOrF32) {
  const Device device = cpu();
  const Shape square{64, 64};
  const Buffer b = device.allocate<bf16>(square), h = device.allocate<f16>(square),
               f = device.allocate<f32>(square), d = device.allocate<f64>(square);
  EXPECT_THROW(prim::matmul(device, b, h, f), InputError);
  EXPECT_THROW(prim::matmul(device, b, b, h), InputError);
  EXPECT_THROW(prim::matmul(device, b, b, d), InputError);
  EXPECT_THROW(prim::matmul(device, f, f, b), InputError);
  EXPECT_THROW(prim::matmul(device, b, b, device.allocate<f32>({64, 63})), InputError);
  EXPECT_EQ(prim::matmul_path(device, b, b, f).kernel, "primitives.matmul.packed.f32");
  EXPECT_EQ(prim::matmul_path(device, b.rows(0, 3), b, f.rows(0, 3)).kernel, "primitives.matmul.bf16.f32");
  const std::vector<bf16> two(64 * 64, bf16{0x4000});
  device.write(b, two.data(), b.bytes());
  prim::matmul(device, b, b, f);
  EXPECT_EQ(device.download<f32>(f), std::vector<f32>(64 * 64, 256.0f));
  // A window's rows are not side by side.
  prim::matmul(device, b.window({0, 1}, {50, 60}), b.window({2, 0}, {60, 62}), f.window({1, 2}, {50, 62}));
  EXPECT_EQ(device.download<f32>(f)[64 + 2], 240.0f);
  EXPECT_EQ(device.download<f32>(f)[64 + 1], 256.0f);
}

}  // namespace
}  // namespace lockstep
