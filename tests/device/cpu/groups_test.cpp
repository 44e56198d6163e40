// Groups kernels: barriers, shared arrays, reductions, atomics.
#include "device/cpu/support.hpp"
#include "lockstep/kernel/wide.hpp"

namespace lockstep {
namespace {

using test::cpu;
using test::random_numbers;

template <class T, class Op>
T tree(std::vector<T> v, Op op) {
  for (size_t s = v.size() / 2; s > 0; s /= 2)
    for (size_t i = 0; i < s; ++i) v[i] = op(v[i], v[i + s]);
  return v[0];
}

TEST(Groups, ReductionIsTheBalancedTree) {
  const Device device = cpu();
  for (int lanes : {1, 2, 8, 16, 32, 256, 1024}) {
    const auto sum =
        kernel("test.group_sum",
               [](Group<1> g, Grid<f32, 1> a, Out<f32, 1> out, Out<f64, 1> wide, Out<i32, 1> least) {
                 const Val<f32> v = a[g.global()];
                 const Val<f32> total = group_sum(v), most = group_max(v);
                 const Val<f64> in_f64 = group_sum(cast<f64>(v));
                 const Val<i32> low = group_min(cast<i32>(v * 100.0f));
                 if_(g.lane() == 0, [&] {
                   out[g.id() * 2] = total;
                   out[g.id() * 2 + 1] = most;
                   wide[g.id()] = in_f64;
                   least[g.id()] = low;
                 });
               },
               {.group = {lanes, 1, 1}});
    const int groups = 5;
    const auto a = random_numbers<float>(size_t(groups * lanes), -1.0f, 1.0f);
    const Buffer in = device.upload<float>(a), out = device.allocate<f32>({groups * 2}),
                 wide = device.allocate<f64>({groups}), least = device.allocate<i32>({groups});
    device.launch(sum, {groups}, in, out, wide, least);
    const auto got = device.download<float>(out);
    const auto got_wide = device.download<double>(wide);
    const auto got_least = device.download<int32_t>(least);
    for (int g = 0; g < groups; ++g) {
      const std::vector<float> part(a.begin() + g * lanes, a.begin() + (g + 1) * lanes);
      EXPECT_EQ(got[size_t(2 * g)], tree(part, [](float x, float y) { return x + y; })) << lanes;
      EXPECT_EQ(got[size_t(2 * g + 1)], tree(part, [](float x, float y) { return x < y ? y : x; })) << lanes;
      EXPECT_EQ(got_wide[size_t(g)],
                tree(std::vector<double>(part.begin(), part.end()), [](double x, double y) { return x + y; }))
          << lanes;
      int low = INT32_MAX;
      for (float v : part) low = std::min(low, int(v * 100.0f));
      EXPECT_EQ(got_least[size_t(g)], low) << lanes;
    }
  }
}

TEST(Groups, LanesThatAreLeftDecide) {
  // The first vectors' lanes, or the first lane alone, have returned when the others read what decides for them all.
  for (int leaving : {1, 16, 32, 48}) {
    const Kernel k = kernel("test.decide",
                            [&](Group<1> g, Grid<i32, 1> flags, InOut<i32, 1> out) {
                              return_if(g.lane() < leaving);
                              const Val<i32> flag = flags[g.id()];
                              out[g.global()] = 1;
                              if_(flag > 0, [] { return_(); });
                              out[g.global()] += 10 + flag;
                            },
                            {.group = {64}});
    const std::vector<i32> flags{-1, 1, -2, 2, 3, -3};
    for (const std::string name : {"cpu", "interp"}) {
      const Device device = Device::open(name);
      const Buffer in = device.upload(flags), out = device.upload(std::vector<i32>(64 * flags.size(), 7));
      device.launch(k, {int64_t(flags.size())}, in, out);
      const std::vector<i32> got = device.download<i32>(out);
      for (size_t p = 0; p < got.size(); ++p) {
        const i32 flag = flags[p / 64];
        EXPECT_EQ(got[p], int(p % 64) < leaving ? 7
                          : flag > 0            ? 1
                                                : 11 + flag)
            << name << " " << leaving << " " << p;
      }
    }
  }
}

TEST(Groups, TransposeThroughSharedMemory) {
  const Device device = cpu();
  for (std::array<int32_t, 3> group :
       {std::array<int32_t, 3>{16, 16, 1}, {8, 8, 1}, {32, 32, 1}, {5, 5, 1}, {3, 3, 1}}) {
    const int t = group[0];
    const Kernel k = kernel("test.transpose",
                            [t](Group<2> g, Grid<f32, 2> a, Out<f32, 2> out) {
                              SharedArray<f32> tile(t * (t + 1));
                              const Val<i32> x = g.global(0), y = g.global(1);
                              if_(x < a.size(1) && y < a.size(0),
                                  [&] { tile[g.local(1) * (t + 1) + g.local(0)] = a(y, x); });
                              barrier();
                              const Val<i32> ox = g.id(1) * t + g.local(0), oy = g.id(0) * t + g.local(1);
                              if_(ox < a.size(0) && oy < a.size(1),
                                  [&] { out(oy, ox) = tile[g.local(0) * (t + 1) + g.local(1)]; });
                            },
                            {.group = group});
    const int h = 43, w = 70;
    const auto a = random_numbers<float>(size_t(h * w), -1.0f, 1.0f);
    const Buffer in = device.upload<float>(a, {h, w}), out = device.allocate<f32>({w, h});
    device.launch(k, {(h + t - 1) / t, (w + t - 1) / t}, in, out);
    const auto got = device.download<float>(out);
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) ASSERT_EQ(got[size_t(x * h + y)], a[size_t(y * w + x)]) << t;
  }
}

TEST(Groups, VariablesAndLocalArraysLiveAcrossBarriers) {
  const Device device = cpu();
  const int lanes = 96;
  const Kernel k = kernel("test.scan",
                          [](Group<1> g, Grid<i32, 1> a, Grid<i32, 1> rounds, Out<i32, 1> out) {
                            const int n = 96;
                            SharedArray<i32> s(n);
                            LocalArray<i32> kept(3);
                            const Val<i32> lane = g.lane();
                            Var<i32> mine = Val<i32>(a[g.global()]), passes = 0;
                            kept[0] = mine;
                            s[lane] = mine;
                            Var<i32> step = 1;
                            loop_([&] {
                              break_if(step >= n);
                              barrier();
                              Var<i32> left = 0;
                              if_(lane >= step, [&] { left = s[lane - step]; });
                              barrier();
                              mine += left;
                              s[lane] = mine;
                              step = step * 2;
                              passes += 1;
                            });
                            kept[1] = passes;
                            for_(0, rounds[0], [&](Val<i32> r) {
                              barrier();
                              const Val<i32> next = s[(lane + 1) % n];
                              barrier();
                              s[lane] = next + r;
                            });
                            barrier();
                            out[g.global()] = mine * 1000 + kept[1] * 100 + s[lane] - kept[0];
                          },
                          {.group = {lanes, 1, 1}});
  const int groups = 3, rounds = 4;
  const auto a = random_numbers<int32_t>(size_t(groups * lanes), 0, 50);
  const Buffer in = device.upload<int32_t>(a), count = device.upload(std::vector<int32_t>{rounds}),
               out = device.allocate<i32>({groups * lanes});
  device.launch(k, {groups}, in, count, out);
  const auto got = device.download<int32_t>(out);
  for (int g = 0; g < groups; ++g) {
    std::vector<int> sums(size_t(lanes), 0);
    for (int l = 0, total = 0; l < lanes; ++l) sums[size_t(l)] = total += a[size_t(g * lanes + l)];
    for (int l = 0; l < lanes; ++l) {
      const int shifted = sums[size_t((l + rounds) % lanes)] + rounds * (rounds - 1) / 2;
      ASSERT_EQ(got[size_t(g * lanes + l)], sums[size_t(l)] * 1000 + 700 + shifted - a[size_t(g * lanes + l)])
          << g << " " << l;
    }
  }
}

TEST(Groups, ThreeDimensionalLanes) {
  const Device device = cpu();
  for (std::array<int32_t, 3> size :
       {std::array<int32_t, 3>{4, 3, 2}, {16, 2, 3}, {1, 5, 7}, {6, 1, 3}, {8, 4, 4}}) {
    const Kernel k = kernel("test.lanes",
                            [](Group<3> g, Out<i32, 1> out) {
                              const Val<i32> id = g.id(0) + g.count(0) * (g.id(1) + g.count(1) * g.id(2));
                              out[id * g.lanes() + g.lane()] =
                                  g.local(0) + 100 * g.local(1) + 10000 * g.local(2) +
                                  1000000 * (g.id(0) + 3 * g.id(1) + 7 * g.id(2));
                            },
                            {.group = size});
    const int lanes = size[0] * size[1] * size[2];
    const Buffer out = device.allocate<i32>({2 * 3 * 2 * lanes});
    device.launch(k, {2, 3, 2}, out);
    const auto got = device.download<int32_t>(out);
    for (int id = 0; id < 12; ++id)
      for (int l = 0; l < lanes; ++l) {
        const int gx = id % 2, gy = id / 2 % 3, gz = id / 6, lx = l % size[0], ly = l / size[0] % size[1],
                  lz = l / size[0] / size[1];
        ASSERT_EQ(got[size_t(id * lanes + l)], lx + 100 * ly + 10000 * lz + 1000000 * (gx + 3 * gy + 7 * gz));
      }
  }
}

TEST(Groups, AtomicsCountEveryLane) {
  const Device device = cpu();
  const Kernel k = kernel("test.atomics", [](At<1> at, Grid<u32, 1> in, InOut<u32, 1> histogram,
                                             InOut<i32, 1> extremes, InOut<u32, 1> places) {
    const Val<u32> v = in[at];
    histogram.atomic_add(cast<i32>(v % 37u), 1u);
    const Val<i32> w = cast<i32>(v) - 5000;
    if_(w % 3 == 0, [&] { extremes.atomic_min(0, w); });
    extremes.atomic_max(1, w);
    extremes.atomic_add(2, 1);
    const Val<u32> slot = histogram.atomic_add(37, 1u);
    places[cast<i32>(slot)] = v;
  });
  const int n = 10007;
  const auto v = random_numbers<uint32_t>(n, 0, 10000);
  const Buffer in = device.upload<uint32_t>(v), histogram = device.upload(std::vector<uint32_t>(38, 0)),
               extremes = device.upload(std::vector<int32_t>{INT32_MAX, INT32_MIN, 0}),
               places = device.allocate<u32>({n});
  device.launch(k, {n}, in, histogram, extremes, places);
  const auto got = device.download<uint32_t>(histogram);
  const auto ends = device.download<int32_t>(extremes);
  auto sorted = device.download<uint32_t>(places), wanted = v;
  std::vector<uint32_t> counts(38, 0);
  int low = INT32_MAX, high = INT32_MIN;
  for (uint32_t x : v) {
    ++counts[x % 37];
    const int w = int(x) - 5000;
    if (w % 3 == 0) low = std::min(low, w);
    high = std::max(high, w);
  }
  counts[37] = n;
  EXPECT_EQ(got, counts);
  EXPECT_EQ(ends, (std::vector<int32_t>{low, high, n}));
  std::sort(sorted.begin(), sorted.end()), std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(sorted, wanted);
}

/// Quotients and remainders of a lane's number, which select the rows of a tile. A vector of lanes may stay in one row
/// or not, and different offsets are added before.
TEST(Groups, PartsOfTheLanesNumber) {
  const Device device = cpu();
  constexpr int kDivisors[] = {1, 3, 8, 12, 16, 48, 64}, kOffsets[] = {0, 4, 16, 256, -16, -3};
  for (std::array<int32_t, 3> group : {std::array<int32_t, 3>{64, 1, 1}, {16, 4, 1}, {24, 2, 1}, {5, 7, 1}}) {
    const int lanes = group[0] * group[1], outputs = 4 * int(std::size(kDivisors) * std::size(kOffsets));
    const Kernel k =
        kernel("test.parts",
               [&](Group<1> g, Grid<i32, 1> table, Out<i32, 2> out) {
                 SharedArray<i32> s(512);
                 for (int n = 0; n < 512; n += lanes)
                   if_(g.lane() + n < 512, [&] { s[g.lane() + n] = table[g.lane() + n]; });
                 barrier();
                 int row = 0;
                 for (int c : kDivisors)
                   for (int offset : kOffsets) {
                     const Val<i32> i = (offset % 2 ? g.local(0) : g.lane()) * (offset == 4 ? 2 : 1) + offset;
                     out(row++, g.lane()) = i / c;
                     out(row++, g.lane()) = s[i % c + 256] + 1000 * (cast<i32>(cast<u32>(i) / u32(c)) % 512);
                     out(row++, g.lane()) = table[(i & (c - 1)) * 2];
                     out(row++, g.lane()) = s[(i >> 3) + 64];
                   }
               },
               {.group = group});
    std::vector<i32> table(512);
    for (int i = 0; i < 512; ++i) table[size_t(i)] = (i * 7919) % 1009;
    const Buffer in = device.upload<i32>(table), out = device.allocate<i32>({outputs, lanes});
    device.launch(k, {1}, in, out);
    const auto got = device.download<i32>(out);
    for (int lane = 0; lane < lanes; ++lane) {
      size_t at = size_t(lane);
      const auto expect = [&](int wanted, int c, int offset) {
        ASSERT_EQ(got[at], wanted) << group[0] << " lanes a row, lane " << lane << ", " << c << ", "
                                   << offset;
        at += size_t(lanes);
      };
      for (int c : kDivisors)
        for (int offset : kOffsets) {
          const int i = (offset % 2 ? lane % group[0] : lane) * (offset == 4 ? 2 : 1) + offset;
          expect(i / c, c, offset);
          expect(table[size_t(i % c + 256)] + 1000 * (int(uint32_t(i) / uint32_t(c)) % 512), c, offset);
          expect(table[size_t((i & (c - 1)) * 2)], c, offset);
          expect(table[size_t((i >> 3) + 64)], c, offset);
        }
    }
  }
}

TEST(Groups, AsynchronousCopiesAndWideAccess) {
  const Device device = cpu();
  const Kernel k = kernel(
      "test.async",
      [](Group<1> g, Grid<f32, 1> a, Out<f32, 1> out) {
        SharedArray<f32> s(64 * 4);
        a.copy_async<4>(s, g.lane() * 4, g.global() * 4);
        async_commit();
        async_wait(0);
        barrier();
        const Wide<f32, 4> w = a.wide<4>(g.global() * 4);
        const Wide<f32, 2> pair = a.wide<2>(g.global() * 2);
        const Val<f32> mirrored = lockstep::wide<4>(s, 252 - g.lane() / 4 * 4)[1];
        out.store_wide(Wide<f32, 4>{{w[3], w[2] + mirrored, w[1] * pair[1], w[0] - pair[0]}}, g.global() * 4);
      },
      {.group = {64, 1, 1}});
  const int groups = 4, n = groups * 256;
  const auto a = random_numbers<float>(n, -1.0f, 1.0f);
  const Buffer in = device.upload<float>(a), out = device.allocate<f32>({n});
  device.launch(k, {groups}, in, out);
  const auto got = device.download<float>(out);
  for (int i = 0; i < n / 4; ++i) {
    const float *w = &a[size_t(4 * i)], *pair = &a[size_t(2 * i)];
    const float mirrored = a[size_t(i / 64 * 256 + 253 - i % 64 / 4 * 4)];
    ASSERT_EQ(got[size_t(4 * i)], w[3]);
    ASSERT_EQ(got[size_t(4 * i + 1)], w[2] + mirrored);
    ASSERT_EQ(got[size_t(4 * i + 2)], w[1] * pair[1]);
    ASSERT_EQ(got[size_t(4 * i + 3)], w[0] - pair[0]);
  }
}

}  // namespace
}  // namespace lockstep
