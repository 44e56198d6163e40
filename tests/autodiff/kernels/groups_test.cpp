// Reverse mode of groups: sums of a group, shared arrays, barriers in loops.
#include "gradient_case.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

using testing::GradientCase;
using Doubles = std::vector<double>;

Doubles group_wave(int64_t n, double step = 0.7) {
  Doubles v;
  for (int64_t k = 0; k < n; ++k) v.push_back(1.2 + std::sin(step * double(k) + 0.3));
  return v;
}

TEST(GradientGroups, SumsOfAGroup) {
  GradientCase c{kernel("rows",
                        [](Group<1> g, Grid<f64, 2> x, Param<f64> a, Out<f64, 1> y) {
                          Var<f64> own(0.0);
                          for_(g.lane(), x.size(1), 8,
                               [&](Val<i32> k) { own = own + sin(a * x(g.id(), k)); });
                          const Val<f64> total = group_sum(Val<f64>(own));
                          if_(g.lane() == 0, [&] { y(g.id()) = total * total; });
                        },
                        {.group = {8}}),
                 {3},
                 {},
                 {{"p0", 0.8}},
                 {}};
  c.f64s("b0", group_wave(3 * 21), {3, 21}).f64s("b1", group_wave(3), {3});
  c.expect_consistent();
}

// Every lane takes the sum, in a loop whose passes depend on the sum before.
TEST(GradientGroups, SumsInALoop) {
  GradientCase c{kernel("normalised",
                        [](Group<1> g, Grid<f64, 1> x, Out<f64, 1> y) {
                          Var<f64> v = Val<f64>(x(g.global()));
                          for_(0, 3, [&](Val<i32>) {
                            const Val<f64> sum = group_sum(v * v);
                            v = v / sqrt(sum) + 0.1 * v * v;
                          });
                          y(g.global()) = Val<f64>(v);
                        },
                        {.group = {4}}),
                 {3},
                 {},
                 {},
                 {}};
  c.f64s("b0", group_wave(12), {12}).f64s("b1", group_wave(12), {12});
  c.expect_consistent();
}

// A softmax: the greatest value is taken off first. Its derivative by any of them is 0, as is that of a difference of ties.
TEST(GradientGroups, TheGreatestOfAGroup) {
  GradientCase c{kernel("softmax",
                        [](Group<1> g, Grid<f64, 1> x, Out<f64, 1> y, Out<f64, 1> span) {
                          const Val<f64> v = x(g.global()), most = group_max(v);
                          const Val<f64> e = exp(v - most);
                          y(g.global()) = e / group_sum(e);
                          const Val<f64> least = group_min(v);
                          if_(g.lane() == 2, [&] { span(g.id()) = most * most - least; });
                        },
                        {.group = {4}}),
                 {3},
                 {},
                 {},
                 {}};
  c.f64s("b0", {0.3, 2.1, -1, 0.7, 5, 1, 4, 2, -3, -2, -7, -1.5}).f64s("b1", group_wave(12));
  c.f64s("b2", group_wave(3));
  c.expect_consistent();
  // Ties: the first lane has it all.
  const Kernel k = kernel(
      "top", [](Group<1> g, Grid<f64, 1> x, Out<f64, 1> y) { y(g.global()) = group_max(x(g.global())); },
      {.group = {4}});
  GradientCase ties{k, {1}, {}, {}, {}};
  ties.f64s("b0", {1, 3, 3, 2}).f64s("b1", {0, 0, 0, 0});
  EXPECT_EQ(ties.gradients(Device::open("interp"), {{"b1", {1, 2, 4, 8}}}).at("b0"), (Doubles{0, 15, 0, 0}));
}

TEST(GradientGroups, TilesThatNeighboursRead) {
  for (const bool async : {false, true}) {
    GradientCase c{kernel("tile",
                          [&](Group<1> g, Grid<f64, 1> x, Out<f64, 1> y) {
                            SharedArray<f64> tile(10);
                            const Val<i32> at = g.global(), last = x.size(0) - 1;
                            const auto bring = [&](const Val<i32>& to, const Val<i32>& from) {
                              const Val<i32> inside = clamp(from, 0, last);
                              if (async)
                                x.copy_async(tile, to, inside);
                              else
                                tile[to] = x(inside);
                            };
                            bring(g.lane() + 1, at);
                            if_(g.lane() < 2, [&] { bring(g.lane() * 9, g.id() * 8 - 1 + g.lane() * 9); });
                            if (async) async_commit(), async_wait(0);
                            barrier();
                            const Val<f64> left = tile[g.lane()], here = tile[g.lane() + 1],
                                           right = tile[g.lane() + 2];
                            if_(at <= last, [&] { y(at) = here * here * left - exp(-right * left); });
                          },
                          {.group = {8}}),
                   {3},
                   {},
                   {},
                   {}};
    c.f64s("b0", group_wave(21), {21}).f64s("b1", group_wave(21), {21});
    c.expect_consistent();
  }
}

// The array that a pass reads is another one in each pass: reverse mode has to bring it back.
TEST(GradientGroups, ProductsByTiles) {
  constexpr int kTile = 4;
  GradientCase c{kernel("product",
                        [](Group<2> g, Grid<f64, 2> a, Grid<f64, 2> b, Out<f64, 2> y) {
                          SharedArray<f64> left(kTile * kTile), right(kTile * kTile);
                          const Val<i32> col = g.global(0), row = g.global(1), x = g.local(0), z = g.local(1);
                          Var<f64> sum(0.0);
                          for_(0, a.size(1), kTile, [&](Val<i32> first) {
                            left[z * kTile + x] = a(row, first + x);
                            right[z * kTile + x] = b(first + z, col);
                            barrier();
                            for_(0, kTile,
                                 [&](Val<i32> k) { sum = sum + left[z * kTile + k] * right[k * kTile + x]; });
                            barrier();
                          });
                          y(row, col) = sin(Val<f64>(sum));
                        },
                        {.group = {kTile, kTile}}),
                 {2, 1},
                 {},
                 {},
                 {}};
  c.f64s("b0", group_wave(8 * 12), {8, 12})
      .f64s("b1", group_wave(12 * 4, 0.4), {12, 4})
      .f64s("b2", group_wave(32), {8, 4});
  c.expect_consistent();
}

// Each step reads what the step before has left in the same array.
TEST(GradientGroups, ScansInPlace) {
  GradientCase c{kernel("scan",
                        [](Group<1> g, Grid<f64, 1> x, Out<f64, 1> y, Param<f64> a) {
                          SharedArray<f64> s(16);
                          s[g.lane()] = x(g.global());
                          barrier();
                          Var<i32> step(1);
                          for_(0, 4, [&](Val<i32>) {
                            const Val<f64> other = s[max(g.lane() - step, 0)], own = s[g.lane()];
                            barrier();
                            if_(g.lane() >= step, [&] { s[g.lane()] = own * other * a; });
                            barrier();
                            step = step * 2;
                          });
                          y(g.global()) = s[15 - g.lane()] * s[g.lane()];
                        },
                        {.group = {16}}),
                 {2},
                 {},
                 {{"p0", 0.7}},
                 {}};
  c.f64s("b0", group_wave(32), {32}).f64s("b1", group_wave(32), {32});
  c.expect_consistent();
}

// A loop with its own count of passes for each group, and branches that a whole group takes.
TEST(GradientGroups, FlowOfWholeGroups) {
  GradientCase c{kernel("flow",
                        [](Group<1> g, Grid<f64, 1> x, Grid<i32, 1> n, Out<f64, 1> y) {
                          SharedArray<f64> s(6);  // not a multiple of the lanes
                          s[g.lane()] = x(g.global());
                          if_(g.lane() < 2, [&] { s[g.lane() + 4] = x(g.global()) * 0.5; });
                          barrier();
                          Var<i32> k(0);
                          while_([&] { return k < n(g.id()); },
                                 [&] {
                                   const Val<f64> v = s[(g.lane() + 1) % 6] * s[(g.lane() + k) % 6];
                                   barrier();
                                   s[g.lane()] = v + 0.1;
                                   barrier();
                                   if_(k % 2 == 0, [&] {
                                     const Val<f64> w = s[g.lane()] * s[5 - g.lane()];
                                     barrier();
                                     s[(g.lane() + 2) % 6] = w;
                                     barrier();
                                   });
                                   k = k + 1;
                                 });
                          y(g.global()) = s[g.lane()] + s[g.lane() + 2];
                        },
                        {.group = {4}}),
                 {3},
                 {},
                 {},
                 {{"b0"}, {}}};
  c.f64s("b0", group_wave(12), {12}).f64s("b2", group_wave(12), {12}).put<int32_t>("b1", {3, 0, 4}, {3});
  c.expect_consistent();
}

}  // namespace
}  // namespace lockstep
