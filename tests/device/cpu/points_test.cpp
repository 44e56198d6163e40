// Points kernels against plain loops: domains of all ranks and ragged sizes, boundaries, thread counts.
#include "device/cpu/support.hpp"

namespace lockstep {
namespace {

using test::cpu;
using test::differing;
using test::random_numbers;

float at_clamped(const std::vector<float>& t, std::array<int, 3> n, int z, int y, int x) {
  z = std::clamp(z, 0, n[0] - 1), y = std::clamp(y, 0, n[1] - 1), x = std::clamp(x, 0, n[2] - 1);
  return t[size_t((z * n[1] + y) * n[2] + x)];
}

const Kernel& heat() {
  static const Kernel k = kernel("test.heat", [](At<3> at, Grid<f32, 3> t, Out<f32, 3> next, Param<f32> a) {
    next[at] = fma(
        a, t[at.x(+1)] + t[at.x(-1)] + t[at.y(+1)] + t[at.y(-1)] + t[at.z(+1)] + t[at.z(-1)] - 6.0f * t[at],
        t[at]);
  });
  return k;
}

std::vector<float> heat_reference(const std::vector<float>& t, std::array<int, 3> n, float a) {
  std::vector<float> next(t.size());
  for (int z = 0; z < n[0]; ++z)
    for (int y = 0; y < n[1]; ++y)
      for (int x = 0; x < n[2]; ++x) {
        const auto v = [&](int dz, int dy, int dx) { return at_clamped(t, n, z + dz, y + dy, x + dx); };
        const float c = v(0, 0, 0),
                    sum = v(0, 0, 1) + v(0, 0, -1) + v(0, 1, 0) + v(0, -1, 0) + v(1, 0, 0) + v(-1, 0, 0);
        // The contraction pass may fuse the product with 6 into the difference.
        next[size_t((z * n[1] + y) * n[2] + x)] = std::fma(a, std::fma(-6.0f, c, sum), c);
      }
  return next;
}

TEST(Points, HeatEqualsPlainLoopOnRaggedGrids) {
  const Device device = cpu();
  for (std::array<int, 3> n : {std::array{1, 1, 1},
                               {1, 1, 17},
                               {3, 2, 5},
                               {4, 5, 16},
                               {7, 3, 33},
                               {5, 9, 64},
                               {2, 31, 100},
                               {33, 34, 35}}) {
    const Shape shape{n[0], n[1], n[2]};
    const auto t = random_numbers<float>(size_t(shape.elements()), -1.0f, 1.0f);
    const Buffer in = device.upload<float>(t, shape), out = device.allocate<f32>(shape);
    device.launch(heat(), shape, in, out, 0.125f);
    const auto got = device.download<float>(out), wanted = heat_reference(t, n, 0.125f);
    for (size_t k = 0; k < got.size(); ++k)
      ASSERT_NEAR(got[k], wanted[k], 1e-6f) << to_string(shape) << " element " << k;
  }
}

TEST(Points, ResultsDoNotDependOnThreads) {
  const Shape shape{40, 50, 70};
  const auto t = random_numbers<float>(size_t(shape.elements()), -1.0f, 1.0f);
  // Sums of groups, which other orders of additions round otherwise.
  const Kernel sum = kernel("test.sum_of_groups",
                            [](Group<1> g, Grid<f32, 1> a, Out<f32, 1> out) {
                              const Val<f32> v = group_sum(a(g.id() * 64 + g.lane()));
                              if_(g.lane() == 0, [&] { out[g.id()] = v; });
                            },
                            {{64, 1, 1}, 0});
  std::vector<float> first, first_sums;
  for (int threads : {1, 2, 3, 7}) {
    const Device device = cpu(threads);
    EXPECT_EQ(device.info().multiprocessors, threads);
    const Buffer in = device.upload<float>(t, shape), out = device.allocate<f32>(shape);
    device.launch(heat(), shape, in, out, 0.1f);
    const auto got = device.download<float>(out);
    if (first.empty()) first = got;
    EXPECT_EQ(differing(first, got), 0) << threads << " threads";
    const int64_t groups = shape.elements() / 64;
    const Buffer sums = device.allocate<f32>({groups});
    device.launch(sum, {groups}, out.reshape({shape.elements()}), sums);
    const auto got_sums = device.download<float>(sums);
    if (first_sums.empty()) first_sums = got_sums;
    EXPECT_EQ(differing(first_sums, got_sums), 0) << threads << " threads";
  }
}

TEST(Points, BoundariesClampWrapAndZero) {
  const Device device = cpu();
  const Kernel k = kernel("test.boundaries", [](At<1> at, Grid<f32, 1> a, Out<f32, 2> out) {
    int row = 0;
    for (int shift : {-20, -3, -1, 1, 2, 19}) {
      out(row++, at.x) = a[at.x(shift)];
      out(row++, at.x) = a.periodic()[at.x(shift)];
      out(row++, at.x) = a.zero()[at.x(shift)];
    }
  });
  for (int n : {1, 2, 5, 15, 16, 17, 48, 61, 200}) {
    const auto a = random_numbers<float>(size_t(n), 1.0f, 2.0f);
    const Buffer in = device.upload<float>(a, {n}), out = device.allocate<f32>({18, n});
    device.launch(k, {n}, in, out);
    const auto got = device.download<float>(out);
    int row = 0;
    for (int shift : {-20, -3, -1, 1, 2, 19})
      for (int how = 0; how < 3; ++how, ++row)
        for (int x = 0; x < n; ++x) {
          const int c = x + shift;
          const float wanted = how == 0          ? a[size_t(std::clamp(c, 0, n - 1))]
                               : how == 1        ? a[size_t(((c % n) + n) % n)]
                               : c >= 0 && c < n ? a[size_t(c)]
                                                 : 0.0f;
          ASSERT_EQ(got[size_t(row * n + x)], wanted)
              << "n " << n << " shift " << shift << " how " << how << " x " << x;
        }
  }
}

TEST(Points, EdgeTestsByTheAuthorHoldEverywhere) {
  const Device device = cpu();
  const Kernel k = kernel("test.edges", [](At<1> at, Out<i32, 1> out, Param<i32> shift) {
    const Val<i32> x = at.x, n = at.extent(0);
    Var<i32> bits = 0;
    const auto mark = [&](int bit, const Val<bool>& c) { if_(c, [&] { bits = bits | (1 << bit); }); };
    mark(0, x == 0), mark(1, x == n - 1), mark(2, x < 3), mark(3, x >= n - 2), mark(4, x > 0),
        mark(5, x != 5);
    mark(6, x + shift >= 0), mark(7, x + shift < n), mark(8, 2 <= x), mark(9, n - 4 > x),
        mark(10, x - 7 <= 0), mark(11, x * 2 < n);
    out[at] = bits;
  });
  for (int n : {1, 3, 16, 40, 129})
    for (int shift : {-1000, -5, 0, 7, 300}) {
      const Buffer out = device.allocate<i32>({n});
      device.launch(k, {n}, out, shift);
      const auto got = device.download<int32_t>(out);
      for (int x = 0; x < n; ++x) {
        const bool c[] = {x == 0,     x == n - 1, x < 3,          x >= n - 2,
                          x > 0,      x != 5,     x + shift >= 0, x + shift<n, 2 <= x, n - 4> x,
                          x - 7 <= 0, x * 2 < n};
        int wanted = 0;
        for (int b = 0; b < 12; ++b) wanted |= int(c[b]) << b;
        ASSERT_EQ(got[size_t(x)], wanted) << "n " << n << " shift " << shift << " x " << x;
      }
    }
}

TEST(Points, StridedWindowsAndReversedRows) {
  const Device device = cpu();
  const Kernel k = kernel("test.reverse", [](At<2> at, Grid<f32, 2> a, Out<f32, 2> out) {
    const Val<i32> w = a.size(1), h = a.size(0), x = at.x, y = at.y;
    out[at] = a(h - 1 - y, w - 1 - x) + 2.0f * a(y, (x * 2) % w);
  });
  const auto a = random_numbers<float>(40 * 90, -1.0f, 1.0f);
  const Buffer whole = device.upload<float>(a, {40, 90});
  const Buffer window = whole.window({3, 5}, {30, 61}), out = device.allocate<f32>({30, 61});
  device.launch(k, {30, 61}, window, out);
  const auto got = device.download<float>(out);
  for (int y = 0; y < 30; ++y)
    for (int x = 0; x < 61; ++x) {
      const auto v = [&](int r, int c) { return a[size_t((r + 3) * 90 + c + 5)]; };
      ASSERT_EQ(got[size_t(y * 61 + x)], std::fma(2.0f, v(y, x * 2 % 61), v(29 - y, 60 - x)))
          << y << " " << x;
    }
}

TEST(Points, GraphReplaysLaunchesAndCopies) {
  const Device device = cpu();
  const Kernel add =
      kernel("test.add_one", [](At<1> at, InOut<f32, 1> a) { a[at] = Val<f32>(a[at]) + 1.0f; });
  const Buffer a = device.upload(std::vector<float>(1000, 0.0f)), b = device.allocate<f32>({1000});
  const Graph graph = device.record([&] {
    device.launch(add, {1000}, a);
    device.launch(add, {1000}, a);
    device.copy(a, b);
  });
  for (int k = 0; k < 3; ++k) device.replay(graph);
  EXPECT_EQ(device.download<float>(b), std::vector<float>(1000, 6.0f));
}

}  // namespace
}  // namespace lockstep
