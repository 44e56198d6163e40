// Lanes at known distances from each other, and loops whose sums are more than the registers hold: against plain
// loops on the host. All numbers are small integers, so that every order of additions gives the same.
#include "device/cpu/support.hpp"
#include "lockstep/kernel/vec.hpp"
#include "lockstep/kernel/wide.hpp"

namespace lockstep {
namespace {

/// Element i of a buffer.
float item(int i) { return float(i * 37 % 101 - 50); }

TEST(Distances, PatternsOfThePlaceInAVector) {
  constexpr int kLanes = 64;
  for (int part : {2, 4, 8, 16, 32}) {
    const Kernel k = kernel("test.patterns",
                            [part](Group<1> g, Grid<f32, 1> in, Out<f32, 1> out) {
                              const SharedArray<f32> tile(4 * kLanes);
                              const Val<i32> j = g.lane(), rest = j & (part - 1), to = (j - rest) * 4 + rest;
                              for (int r = 0; r < 4; ++r) tile[to + r * part] = in(j + r * kLanes);
                              barrier();
                              for (int r = 0; r < 4; ++r)
                                out(j * 4 + r) = tile[j % part * 3 + r] + tile[j + r * kLanes];
                            },
                            {.group = {kLanes}});
    std::vector<f32> in(4 * kLanes), tile(in.size()), got, want(in.size());
    for (int i = 0; i < 4 * kLanes; ++i) in[size_t(i)] = item(i);
    for (int j = 0; j < kLanes; ++j)
      for (int r = 0; r < 4; ++r)
        tile[size_t((j - j % part) * 4 + j % part + r * part)] = in[size_t(j + r * kLanes)];
    for (int j = 0; j < kLanes; ++j)
      for (int r = 0; r < 4; ++r)
        want[size_t(j * 4 + r)] = tile[size_t(j % part * 3 + r)] + tile[size_t(j + r * kLanes)];
    const Device device = test::cpu();
    const Buffer from = device.upload(std::span<const f32>(in), {4 * kLanes}),
                 to = device.allocate<f32>({4 * kLanes});
    device.launch(k, {1}, from, to);
    EXPECT_EQ(device.download<f32>(to), want) << part;
  }
}

/// Pairs and quadruples of a launch's own stride: side by side, and with others between them.
TEST(Distances, RecordsOfAStrideOfTheLaunch) {
  constexpr int kCount = 77;
  const Kernel k = kernel("test.pairs", [](At<1> at, Grid<f32, 2> in, Out<f32, 2> out) {
    const auto pair = in.wide<2>(at.x, 0);
    out.store_wide<2>(Wide<f32, 2>{{pair[1], pair[0] + 1.0f}}, at.x, 0);
  });
  for (int stride : {2, 6}) {
    std::vector<f32> in(size_t(kCount * stride));
    for (int i = 0; i < kCount * stride; ++i) in[size_t(i)] = item(i);
    const Device device = test::cpu();
    const Buffer from = device.upload(std::span<const f32>(in), {kCount, stride}),
                 to = device.upload(std::span<const f32>(in), {kCount, stride});
    device.launch(k, {kCount}, from, to);
    std::vector<f32> want = in;
    for (int i = 0; i < kCount; ++i) {
      want[size_t(i * stride)] = in[size_t(i * stride + 1)];
      want[size_t(i * stride + 1)] = in[size_t(i * stride)] + 1.0f;
    }
    EXPECT_EQ(device.download<f32>(to), want) << stride;
  }
}

/// Twiddles of a transform: pairs out of a table, at remainders of the lane's number; before a barrier and, with the
/// place computed again, behind it.
TEST(Distances, RecordsAtRemainders) {
  constexpr int kLanes = 64, kRecords = 64;
  for (int part : {2, 4, 5, 8, 16})
    for (int stride : {2, 6}) {
      const Kernel k = kernel("test.remainders",
                              [part](Group<1> g, Grid<f32, 2> table, Out<f32, 1> out) {
                                const SharedArray<f32> tile(2 * kLanes);
                                const Val<i32> j = g.lane(), rest = j % part, to = (j - rest) * 2 + rest;
                                const auto pair = table.wide<2>(rest * 3, 0);
                                tile[j] = pair[0];
                                tile[j + int(kLanes)] = pair[1];
                                barrier();
                                out(to) = tile[kLanes - 1 - j];
                                out(to + part) = tile[2 * kLanes - 1 - j];
                              },
                              {.group = {kLanes}});
      std::vector<f32> in(size_t(kRecords * stride)), want(2 * kLanes + 2 * 16, -1.0f);
      for (int i = 0; i < kRecords * stride; ++i) in[size_t(i)] = item(i);
      for (int j = 0; j < kLanes; ++j) {
        const int at = (kLanes - 1 - j) % part * 3 * stride, to = (j - j % part) * 2 + j % part;
        want[size_t(to)] = in[size_t(at)];
        want[size_t(to + part)] = in[size_t(at + 1)];
      }
      const Device device = test::cpu();
      const Buffer from = device.upload(std::span<const f32>(in), {kRecords, stride}),
                   out = device.upload(std::vector<f32>(want.size(), -1.0f));
      device.launch(k, {1}, from, out);
      EXPECT_EQ(device.download<f32>(out), want) << part << " " << stride;
    }
}

TEST(Distribution, MoreSumsThanRegisters) {
  constexpr int kSide = 6, kLanes = 24, kDepth = 9;
  const Kernel k = kernel("test.sums",
                          [](Group<1> g, Grid<f32, 2> a, Grid<f32, 2> b, Out<f32, 3> out) {
                            VarArray<f32, kSide * kSide> sum(0.0f);
                            for_(0, int(kDepth), [&](Val<i32> n) {
                              for (int i = 0; i < kSide; ++i)
                                for (int j = 0; j < kSide; ++j)
                                  sum[i * kSide + j] =
                                      fma(a(n, i), b(n, g.lane() + j * kLanes), sum[i * kSide + j]);
                            });
                            barrier();
                            for (int i = 0; i < kSide; ++i)
                              for (int j = 0; j < kSide; ++j) out(i, j, g.lane()) = sum[i * kSide + j];
                          },
                          {.group = {kLanes}});
  std::vector<f32> a(kDepth * kSide), b(kDepth * kSide * kLanes), want(size_t(kSide * kSide * kLanes), 0.0f);
  for (size_t i = 0; i < a.size(); ++i) a[i] = item(int(i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = item(int(i) + 7);
  for (int n = 0; n < kDepth; ++n)
    for (int i = 0; i < kSide; ++i)
      for (int j = 0; j < kSide * kLanes; ++j)
        want[size_t(i * kSide * kLanes + j)] += a[size_t(n * kSide + i)] * b[size_t(n * kSide * kLanes + j)];
  const Device device = test::cpu();
  const Buffer left = device.upload(std::span<const f32>(a), {kDepth, kSide}),
               right = device.upload(std::span<const f32>(b), {kDepth, kSide * kLanes}),
               to = device.allocate<f32>({kSide, kSide, kLanes});
  device.launch(k, {1}, left, right, to);
  EXPECT_EQ(device.download<f32>(to), want);
}

}  // namespace
}  // namespace lockstep
