// Storage types, conversions, streaming stores, elementary operations on edge values.
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <set>

#include "device/cpu/support.hpp"

namespace lockstep {
namespace {

using test::cpu;
using test::differing;
using test::random_numbers;

TEST(Memory, Bfloat16RoundsToNearestEven) {
  const Device device = cpu();
  const Kernel k = kernel("test.bf16", [](At<1> at, Grid<f32, 1> in, Out<bf16, 1> out) { out[at] = in[at]; });
  const Kernel back =
      kernel("test.bf16_back", [](At<1> at, Grid<bf16, 1> in, Out<f32, 1> out) { out[at] = in[at]; });
  std::vector<float> values = random_numbers<float>(5000, -1e4f, 1e4f);
  for (uint32_t bits : {0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7f7fffffu, 0x00000001u,
                        0x3f808000u, 0x3f818000u, 0x3f808001u})
    values.push_back(std::bit_cast<float>(bits));
  const int64_t n = int64_t(values.size());
  const Buffer in = device.upload<float>(values), out = device.allocate<bf16>({n}),
               wide = device.allocate<f32>({n});
  device.launch(k, {n}, in, out);
  device.launch(back, {n}, out, wide);
  const auto got = device.download<float>(wide);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]), even = bits + 0x7fff + ((bits >> 16) & 1);
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), even & 0xffff0000u) << values[i];
  }
}

TEST(Memory, HalfAndByteStorageGatherAndShift) {
  const Device device = cpu();
  const Kernel k = kernel("test.narrow", [](At<1> at, Grid<f16, 1> h, Grid<uint8_t, 1> b, Out<f16, 1> h_out,
                                            Out<uint8_t, 1> b_out, Out<f32, 1> mixed) {
    const Val<i32> x = at.x, n = at.extent(0);
    const Val<i32> far = (x * 37) % n;
    h_out[at] = h[at.x(1)] * 2.0f;
    b_out[at] = b[at.x(-1)] + 3u;
    mixed[at] = h[far] + cast<f32>(b[far]);
  });
  for (int n : {1, 3, 16, 50, 333}) {
    std::vector<f16> h(static_cast<size_t>(n));
    std::vector<uint8_t> b(static_cast<size_t>(n));
    const auto value = [](int i) { return float(i % 31) * 0.25f - 3.0f; };
    const auto bits_of_half = [](float v) {  // exact for these values
      const uint32_t f = std::bit_cast<uint32_t>(v);
      return v == 0 ? uint16_t(0)
                    : uint16_t((f >> 16 & 0x8000) | (((f >> 23 & 0xff) - 112) << 10) | (f >> 13 & 0x3ff));
    };
    for (int i = 0; i < n; ++i) h[size_t(i)].bits = bits_of_half(value(i)), b[size_t(i)] = uint8_t(i * 7);
    const Buffer hb = device.upload<f16>(h), bb = device.upload<uint8_t>(b), ho = device.allocate<f16>({n}),
                 bo = device.allocate<uint8_t>({n}), mo = device.allocate<f32>({n});
    device.launch(k, {n}, hb, bb, ho, bo, mo);
    const auto half = device.download<f16>(ho);
    const auto bytes = device.download<uint8_t>(bo);
    const auto mixed = device.download<float>(mo);
    for (int x = 0; x < n; ++x) {
      ASSERT_EQ(half[size_t(x)].bits, bits_of_half(2.0f * value(std::min(x + 1, n - 1)))) << n << " " << x;
      ASSERT_EQ(bytes[size_t(x)], uint8_t(std::max(x - 1, 0) * 7 + 3)) << n << " " << x;
      const int far = x * 37 % n;
      ASSERT_EQ(mixed[size_t(x)], value(far) + float(uint8_t(far * 7))) << n << " " << x;
    }
  }
}

TEST(Memory, StreamingStoresWriteEverything) {
  const Device device = cpu();
  const Kernel k = kernel("test.stream", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> out) {
    out.store_streaming(a.streaming()(at.y, at.x) + 1.0f, at.y, at.x);
  });
  for (Shape shape : {Shape{1, 5}, Shape{7, 33}, Shape{64, 64}, Shape{30, 1000}}) {
    const auto a = random_numbers<float>(size_t(shape.elements()), -1.0f, 1.0f);
    const Buffer in = device.upload<float>(a, shape), out = device.allocate<f32>(shape);
    device.launch(k, shape, in, out);
    auto wanted = a;
    for (float& v : wanted) v += 1.0f;
    EXPECT_EQ(differing(device.download<float>(out), wanted), 0) << to_string(shape);
  }
}

TEST(Memory, LargeArraysOfOneSizeBeginInSetsOfTheirOwn) {
  const Device device = cpu();
  std::vector<Buffer> arrays;
  std::set<uint64_t> first, second;
  for (int k = 0; k < 12; ++k) {
    arrays.push_back(device.allocate<f32>({128, 128, 128}));
    const uint64_t address = arrays.back().native();
    EXPECT_EQ(address % 64, 0u);
    first.insert(address % (4 << 10));
    second.insert(address % (128 << 10));
  }
  EXPECT_EQ(first.size(), 12u);
  EXPECT_EQ(second.size(), 12u);
}

TEST(Memory, WideIndicesReachTheSameElements) {
  const Device device = cpu();
  const Kernel k = kernel("test.wide_index", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> out) {
    out[at] = a[at.x(1)] - a[at.y(-1)] + a(at.x, at.y);
  });
  ASSERT_EQ(k.function(Type::i64).index_type, Type::i64);
  const int n = 37;
  const auto a = random_numbers<float>(n * n, -1.0f, 1.0f);
  const Buffer in = device.upload<float>(a, {n, n}), out = device.allocate<f32>({n, n}),
               wide = device.allocate<f32>({n, n});
  device.launch(k, {n, n}, in, out);
  DeviceOptions options;
  options.wide_index = true;
  const Device other = Device::open("cpu", options);
  const Buffer in2 = other.upload<float>(a, {n, n}), out2 = other.allocate<f32>({n, n});
  other.launch(k, {n, n}, in2, out2);
  EXPECT_EQ(differing(device.download<float>(out), other.download<float>(out2)), 0);
  EXPECT_EQ(device.download<float>(out)[0], a[1] - a[0] + a[0]);
}

TEST(Memory, IntegerDivisionAndConversionsOnEdgeValues) {
  const Device device = cpu();
  const Kernel k = kernel("test.integers", [](At<1> at, Grid<i32, 1> a, Grid<i32, 1> b, Grid<f32, 1> f,
                                              Out<i32, 2> out, Out<u32, 2> uout) {
    const Val<i32> x = a[at], y = b[at];
    const Val<u32> ux = bitcast<u32>(x), uy = bitcast<u32>(y);
    out(0, at.x) = x / y, out(1, at.x) = x % y, out(2, at.x) = x / 7, out(3, at.x) = x % -1,
           out(4, at.x) = x >> y, out(5, at.x) = x << y;
    out(6, at.x) = abs(x), out(7, at.x) = min(x, y), out(8, at.x) = cast<i32>(f[at]),
           out(9, at.x) = clz(x) * 100 + ctz(x);
    uout(0, at.x) = ux / uy, uout(1, at.x) = ux % uy, uout(2, at.x) = umulhi(ux, uy),
            uout(3, at.x) = ux >> uy, uout(4, at.x) = max(ux, uy);
    uout(5, at.x) = cast<u32>(f[at]), uout(6, at.x) = popcount(ux),
            uout(7, at.x) = bitcast<u32>(cast<f32>(ux));
  });
  std::vector<int32_t> a, b;
  std::vector<float> f;
  const int32_t edges[] = {
      0, 1, -1, 2, -2, 7, 31, 32, 33, INT32_MAX, INT32_MIN, INT32_MIN + 1, 123456789, -987654321};
  const float floats[] = {0.0f, -0.0f,    1.5f,      -1.5f,  3e9f,          -3e9f,         5e9f,
                          NAN,  INFINITY, -INFINITY, 1e-40f, 2147483520.0f, 4294967040.0f, -0.9f};
  for (int32_t x : edges)
    for (size_t k2 = 0; k2 < std::size(edges); ++k2)
      a.push_back(x), b.push_back(edges[k2]), f.push_back(floats[k2]);
  const int64_t n = int64_t(a.size());
  const Buffer ab = device.upload<int32_t>(a), bb = device.upload<int32_t>(b), fb = device.upload<float>(f),
               out = device.allocate<i32>({10, n}), uout = device.allocate<u32>({8, n});
  device.launch(k, {n}, ab, bb, fb, out, uout);
  const auto got = device.download<int32_t>(out);
  const auto ugot = device.download<uint32_t>(uout);
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t x = a[i], y = b[i];
    const uint32_t ux = uint32_t(a[i]), uy = uint32_t(b[i]);
    const auto row = [&](int r) { return got[size_t(r) * a.size() + i]; };
    const auto urow = [&](int r) { return ugot[size_t(r) * a.size() + i]; };
    const std::string where = std::to_string(x) + " " + std::to_string(y) + " " + std::to_string(f[i]);
    ASSERT_EQ(row(0), y == 0 ? 0 : int32_t(x / y)) << where;
    ASSERT_EQ(row(1), y == 0 ? 0 : int32_t(x % y)) << where;
    ASSERT_EQ(row(2), int32_t(x / 7)) << where;
    ASSERT_EQ(row(3), 0) << where;
    ASSERT_EQ(row(4), a[i] >> (uy & 31)) << where;
    ASSERT_EQ(row(5), int32_t(ux << (uy & 31))) << where;
    ASSERT_EQ(row(6), int32_t(x < 0 ? 0u - ux : ux)) << where;
    ASSERT_EQ(row(7), std::min(a[i], b[i])) << where;
    ASSERT_EQ(row(8), std::isnan(f[i])         ? 0
                      : f[i] >= 2147483648.0f  ? INT32_MAX
                      : f[i] <= -2147483648.0f ? INT32_MIN
                                               : int32_t(f[i]))
        << where;
    ASSERT_EQ(row(9), std::countl_zero(ux) * 100 + std::countr_zero(ux)) << where;
    ASSERT_EQ(urow(0), uy == 0 ? 0 : ux / uy) << where;
    ASSERT_EQ(urow(1), uy == 0 ? 0 : ux % uy) << where;
    ASSERT_EQ(urow(2), uint32_t(uint64_t(ux) * uy >> 32)) << where;
    ASSERT_EQ(urow(3), ux >> (uy & 31)) << where;
    ASSERT_EQ(urow(4), std::max(ux, uy)) << where;
    ASSERT_EQ(urow(5), std::isnan(f[i]) || f[i] <= 0 ? 0u
                       : f[i] >= 4294967296.0f       ? UINT32_MAX
                                                     : uint32_t(f[i]))
        << where;
    ASSERT_EQ(urow(6), uint32_t(std::popcount(ux))) << where;
    ASSERT_EQ(urow(7), std::bit_cast<uint32_t>(float(ux))) << where;
  }
}

#ifdef __SSE2__
TEST(Memory, SubnormalsStayWhateverTheCallersModeIs) {
  const Device device = cpu();
  const Kernel k =
      kernel("test.subnormal", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) { out[at] = a[at] * 0.5f; });
  const std::vector<float> tiny(100, 3e-39f);
  const Buffer in = device.upload<float>(tiny), out = device.allocate<f32>({100});
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  device.launch(k, {100}, in, out);
  EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040u);
  _mm_setcsr(before);
  for (float v : device.download<float>(out)) ASSERT_EQ(v, 3e-39f * 0.5f);
}
#endif

TEST(Memory, SystemMemoryIsReported) {
  const MemoryInfo memory = cpu().memory();
  EXPECT_GT(memory.total_bytes, int64_t(1) << 28);
  EXPECT_GT(memory.free_bytes, 0);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
}

}  // namespace
}  // namespace lockstep
