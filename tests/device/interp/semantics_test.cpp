#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/device.hpp"

using namespace lockstep;

namespace {
class Interp : public testing::Test {
 protected:
  Device device = Device::open("interp");
  template <class T>
  Buffer filled(int64_t n, T value = T()) {
    return device.upload(std::vector<T>(size_t(n), value));
  }
};
}  // namespace

TEST_F(Interp, HeatStepClampsAtTheEdge) {
  const Kernel heat = kernel("test.heat", [](At<2> at, Grid<f32, 2> t, Out<f32, 2> next, Param<f32> a) {
    next[at] = fma(a, t[at.x(+1)] + t[at.x(-1)] - 2.0f * t[at], t[at]);
  });
  const int ny = 3, nx = 7;
  std::vector<f32> t(ny * nx);
  for (int k = 0; k < ny * nx; ++k) t[k] = float(k * k % 11);
  const Buffer in = device.upload<f32>(t, {ny, nx}), out = device.allocate<f32>({ny, nx});
  device.launch(heat, {ny, nx}, in, out, 0.1f);
  const auto result = device.download<f32>(out);
  for (int y = 0; y < ny; ++y)
    for (int x = 0; x < nx; ++x) {
      const auto v = [&](int c) { return t[y * nx + std::clamp(c, 0, nx - 1)]; };
      // Contraction: 2*t is the one product of the subtraction.
      EXPECT_EQ(result[y * nx + x], std::fma(0.1f, std::fma(-2.0f, v(x), v(x + 1) + v(x - 1)), v(x)));
    }
}

TEST_F(Interp, LoopsBreakContinueReturn) {
  const Kernel k = kernel("test.loops", [](At<1> at, Out<i32, 1> out) {
    out[at] = -1;
    return_if(at.x == 3);
    Var<i32> sum = 0;
    for_(10, 0, -2, [&](Val<i32> i) {
      continue_if(i == 4);
      sum += i;
      loop_([&] {
        sum += 1;
        break_if(Val<i32>(sum) > 12);
      });
      break_if(i < at.x);
    });
    out[at] = sum;
  });
  const Buffer out = filled<i32>(9);
  device.launch(k, {9}, out);
  const auto result = device.download<i32>(out);
  for (int x = 0; x < 9; ++x) {
    int sum = 0;
    for (int i = 10; i > 0; i -= 2) {
      if (i == 4) continue;
      sum += i;
      for (;;) {
        sum += 1;
        if (sum > 12) break;
      }
      if (i < x) break;
    }
    EXPECT_EQ(result[x], x == 3 ? -1 : sum) << x;
  }
}

TEST_F(Interp, GroupReductionIsTheFixedTree) {
  const Kernel k = kernel("test.sum",
                          [](Group<1> g, Grid<f32, 1> in, Out<f32, 1> out) {
                            const auto sum = group_sum(in(g.global()));
                            const auto low = group_min(in(g.global()));
                            if_(g.lane() == 0, [&] { out(g.id()) = sum + low * 0.0f; });
                          },
                          {{16, 1, 1}});
  std::vector<f32> v(48);
  for (int i = 0; i < 48; ++i) v[i] = 1.0f / float(i + 1);
  const Buffer in = device.upload(v), out = filled<f32>(3);
  device.launch(k, {3}, in, out);
  const auto result = device.download<f32>(out);
  for (int g = 0; g < 3; ++g) {
    std::vector<f32> tree(v.begin() + g * 16, v.begin() + g * 16 + 16);
    for (int s = 8; s > 0; s /= 2)
      for (int i = 0; i < s; ++i) tree[i] += tree[i + s];
    EXPECT_EQ(result[g], tree[0]);
  }
}

TEST_F(Interp, BarriersInsideUniformLoops) {
  const Kernel scan = kernel("test.scan",
                             [](Group<1> g, Grid<i32, 1> in, Out<i32, 1> out, Param<i32> passes) {
                               SharedArray<i32> s(8);
                               s[g.lane()] = in(g.global());
                               barrier();
                               Var<i32> step = 1;
                               for_(0, passes, [&](Val<i32>) {
                                 Var<i32> left = 0;
                                 if_(g.lane() >= step, [&] { left = s[g.lane() - step]; });
                                 barrier();
                                 s[g.lane()] += left;
                                 barrier();
                                 step += step;
                                 break_if(Val<i32>(step) >= 8);
                               });
                               out(g.global()) = s[g.lane()];
                             },
                             {{8, 1, 1}});
  std::vector<i32> v(16);
  std::iota(v.begin(), v.end(), 1);
  const Buffer in = device.upload(v), out = filled<i32>(16);
  device.launch(scan, {2}, in, out, 100);
  const auto result = device.download<i32>(out);
  for (int g = 0; g < 2; ++g) {
    std::vector<i32> expected(8);
    std::partial_sum(v.begin() + g * 8, v.begin() + g * 8 + 8, expected.begin());
    for (int l = 0; l < 8; ++l) EXPECT_EQ(result[g * 8 + l], expected[l]);
  }
}

TEST_F(Interp, StorageTypesConvert) {
  const Kernel k =
      kernel("test.storage", [](At<1> at, Grid<f32, 1> in, Out<f16, 1> h, Out<bf16, 1> b, Out<uint8_t, 1> u) {
        h[at] = in[at];
        b[at] = in[at];
        u[at] = cast<u32>(in[at]);
      });
  const Buffer in = device.upload(std::vector<f32>{1.0f, 300.7f, 1e-7f}), h = device.allocate<f16>({3}),
               b = device.allocate<bf16>({3}), u = device.allocate<uint8_t>({3});
  device.launch(k, {3}, in, h, b, u);
  EXPECT_EQ(device.download<f16>(h)[1].bits, 0x5cb3);
  EXPECT_EQ(device.download<f16>(h)[2].bits, 0x0002);
  EXPECT_EQ(device.download<bf16>(b)[1].bits, 0x4396);
  EXPECT_EQ(device.download<uint8_t>(u)[1], 300 & 255);
}

TEST_F(Interp, RecordedWorkRunsOnReplayOnly) {
  const Kernel add = kernel("test.add", [](At<1> at, InOut<i32, 1> b, Param<i32> n) { b[at] += n; });
  const Buffer b = filled<i32>(4);
  const Graph graph = device.record([&] {
    device.launch(add, {4}, b, 1);
    device.launch(add, {4}, b, 10);
  });
  EXPECT_EQ(device.download<i32>(b), std::vector<i32>(4, 0));
  device.replay(graph);
  device.replay(graph);
  EXPECT_EQ(device.download<i32>(b), std::vector<i32>(4, 22));
}

TEST_F(Interp, WideAccesses) {
  const Kernel k = kernel("test.wide", [](At<1> at, Grid<f32, 1> in, Out<f32, 1> out) {
    const auto v = in.wide<4>(at.x * 4);
    out.store_wide(Wide<f32, 2>{{v[3], v[0]}}, at.x * 2);
  });
  std::vector<f32> v(16);
  std::iota(v.begin(), v.end(), 0.0f);
  const Buffer out = filled<f32>(8);
  device.launch(k, {4}, device.upload(v), out);
  EXPECT_EQ(device.download<f32>(out), (std::vector<f32>{3, 0, 7, 4, 11, 8, 15, 12}));
}
