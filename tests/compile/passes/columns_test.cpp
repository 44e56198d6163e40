// Four columns a lane: which accesses become one, that no bit changes, and what stays as it is.
#include "compile/passes/forms/columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "compile/lower.hpp"
#include "compile/passes/forms/stencil.hpp"
#include "helpers.hpp"

using namespace lockstep;
using ir::Op;

namespace {

ir::Function lowered(const ir::Function& traced) {
  return compile::lower(traced, {compile::Target::cuda, Numerics::exact});
}
template <class Body>
std::optional<compile::ColumnsForm> form_of(Body body, KernelOptions options = {}) {
  auto form = compile::columns_form(lowered(traced(body, options)));
  if (form) ir::verify(form->function);
  return form;
}
const auto heat = [](Boundary boundary) {
  return [=](At<3> at, Grid<f32, 3> t0, Out<f32, 3> next, Param<f32> a) {
    const auto t = t0.with(boundary);
    const auto sum = t[at.x(+1)] + t[at.x(-1)] + t[at.y(+1)] + t[at.y(-1)] + t[at.z(+1)] + t[at.z(-1)];
    next[at] = fma(a, sum - 6.0f * t[at], t[at]);
  };
};

}  // namespace

TEST(Columns, AStencilLoadsEachRowOnce) {
  for (const Boundary boundary : {Boundary::clamp, Boundary::periodic, Boundary::zero}) {
    const auto form = form_of(heat(boundary));
    ASSERT_TRUE(form);
    EXPECT_EQ(form->accesses_of_points, 4 * 8);
    EXPECT_EQ(form->rows, 5);
    EXPECT_EQ(form->sides, 2);
    EXPECT_EQ(form->stores, 1);
    EXPECT_EQ(form->loads_of_rows, 7);
    EXPECT_EQ(form->buffers, (std::vector<uint32_t>{0, 1}));
    EXPECT_EQ(form->strides.size(), 4u);  // two of each buffer
    ASSERT_EQ(form->extents.size(), 1u);
    EXPECT_EQ(form->function[form->function.blocks[0].back()].lanes, 4);
  }
}

TEST(Columns, RulesAlongXStayAtTheSidesAlone) {
  EXPECT_EQ(count(form_of(heat(Boundary::clamp))->function, Op::clamp_index), 6);    // two along each axis
  EXPECT_EQ(count(form_of(heat(Boundary::zero))->function, Op::select), 2 + 4 * 4);  // x: the two sides
  const auto inner = [](Boundary boundary) {
    return compile::columns_form(compile::inside_form(lowered(traced(heat(boundary))), {false, true, true}))
        ->function;
  };
  EXPECT_EQ(count(inner(Boundary::clamp), Op::clamp_index), 2);
  EXPECT_EQ(count(inner(Boundary::periodic), Op::select), 2);
  EXPECT_EQ(count(inner(Boundary::periodic), Op::irem), 0);  // of four columns at least
  EXPECT_EQ(count(inner(Boundary::zero), Op::ilt), 2);
  EXPECT_EQ(count(inner(Boundary::zero), Op::select), 2);
}

TEST(Columns, ShiftsOfMoreThanFourColumnsKeepTheirRemainder) {
  const auto form = form_of([](At<1> at, Grid<f32, 1> t0, Out<f32, 1> out) {
    const auto t = t0.with(Boundary::periodic);
    out[at] = t[at.x(-1)] + t[at] + t[at.x(1)] + t[at.x(2)];
  });
  ASSERT_TRUE(form);
  EXPECT_EQ(form->sides, 3);  // x - 1, x + 4, x + 5
  EXPECT_EQ(count(form->function, Op::irem), 1);
}

TEST(Columns, InsideSettlesOnlyComparisonsWithinTheReach) {
  const auto inner = [](auto body) { return compile::inside_form(lowered(traced(body))); };
  EXPECT_EQ(count(inner(heat(Boundary::zero)), Op::ilt), 0);
  // The author's own comparison with an extent: like that of a load, farther than any, or with another buffer's.
  const auto compared = [&](int offset, bool another) {
    return count(inner([=](At<1> at, Grid<f32, 1> t0, Grid<f32, 1> u, Out<f32, 1> out) {
                   const auto t = t0.with(Boundary::zero);
                   const Val<i32> size = another ? u.size(0) : t0.size(0);
                   const Val<bool> own = bitcast<u32>(Val<i32>(at.x) + offset) < bitcast<u32>(size);
                   out[at] = select(own, t[at.x(1)] + t[at.x(-1)], t[at]);
                 }),
                 Op::ilt);
  };
  EXPECT_EQ(compared(1, false), 0);
  EXPECT_EQ(compared(5, false), 1);
  EXPECT_EQ(compared(-5, false), 1);
  EXPECT_EQ(compared(1, true), 1);
  // Corners take two comparisons together.
  const auto corner = [](At<2> at, Grid<f32, 2> t0, Out<f32, 2> out) {
    const auto t = t0.with(Boundary::zero);
    out[at] = t[at.x(1).y(1)] + t[at.x(-1).y(-1)];
  };
  EXPECT_EQ(count(inner(corner), Op::ilt), 0);
  EXPECT_EQ(count(inner(corner), Op::select), 0);
}

// Points that no rule can reach are those within the reach of every extent.
TEST(Columns, ReachesAreThoseOfEachExtent) {
  const auto reach = [](auto body) { return compile::stencil_reach(lowered(traced(body))); };
  const auto two = reach([](At<2> at, Grid<f32, 2> t0, Grid<f32, 2> u0, Out<f32, 2> out) {
    const auto t = t0.with(Boundary::clamp), u = u0.with(Boundary::periodic);
    out[at] = t[at.x(1)] + t[at.x(-3)] + u[at.x(2)] * u[at.y(-1)];
  });
  std::vector<std::tuple<int, int64_t, int64_t>> found;
  for (const auto& r : two.reaches) found.emplace_back(r.axis, r.low, r.high);
  EXPECT_THAT(found, testing::IsSupersetOf(
                         std::vector<std::tuple<int, int64_t, int64_t>>{{0, -3, 1}, {0, 0, 2}, {1, -1, 0}}));
  EXPECT_TRUE(two.complete);
  EXPECT_FALSE(reach([](At<1> at, Grid<f32, 1> t, Grid<i32, 1> n, Out<f32, 1> out) {
                 out[at] = t.clamped()[n[at]] + t[at.x(1)];
               }).complete);
}

TEST(Columns, NeighboursOfSeveralColumnsAreLoadedOnce) {
  for (const Boundary boundary : {Boundary::clamp, Boundary::periodic}) {
    const auto form = form_of([=](At<1> at, Grid<f32, 1> t0, Out<f32, 1> out) {
      const auto t = t0.with(boundary);
      out[at] = t[at.x(-2)] + t[at.x(-1)] + t[at] + t[at.x(1)] + t[at.x(2)];
    });
    ASSERT_TRUE(form);
    EXPECT_EQ(form->rows, 1);
    EXPECT_EQ(form->sides, 4);  // x - 2, x - 1, x + 4, x + 5
    EXPECT_TRUE(form->strides.empty());
  }
}

TEST(Columns, WhatNoColumnReadsIsNotLoaded) {
  // x and x + 1 of a row that lanes read at x + 2 alone: perhaps before its beginning.
  const auto shifted = [](At<1> at, Grid<f32, 1> t, Grid<f32, 1> u, Out<f32, 1> out) {
    out[at] = t.unchecked()[at.x(2)] + u[at];
  };
  const auto form = form_of(shifted);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->rows, 1);
  EXPECT_EQ(form->sides, 4);
  EXPECT_EQ(form->buffers, (std::vector<uint32_t>{1, 2}));
  EXPECT_FALSE(form_of([](At<1> at, Grid<f32, 1> t, Out<f32, 1> out) { out[at] = t.unchecked()[at.x(2)]; }));
  // All of x … x + 3, though never at the point.
  EXPECT_EQ(
      form_of([](At<1> at, Grid<f32, 1> t, Out<f32, 1> out) { out[at] = t[at.x(1)] - t[at.x(-1)]; })->rows,
      1);
}

TEST(Columns, OtherElementsAndGathersKeepTheirAccesses) {
  const auto form =
      form_of([](At<2> at, Grid<f64, 2> d, Grid<f32, 1> table, Grid<i32, 2> n, Out<f64, 2> out) {
        out[at] = d[at] + cast<f64>(table(n[at])) + cast<f64>(table(Val<i32>(at.y)));
      });
  ASSERT_TRUE(form);
  EXPECT_EQ(form->rows, 1);           // n
  EXPECT_EQ(form->sides, 4 + 4 + 1);  // d, the gather; one load that has no x
  EXPECT_EQ(form->stores, 4);
}

// The author's comparison with another buffer's size holds for four columns only where that buffer has them.
TEST(Columns, ComparisonsRequireTheirExtent) {
  const auto form = form_of([](At<1> at, Grid<f32, 1> t, Grid<f32, 1> u, Out<f32, 1> out) {
    out[at] = select(bitcast<u32>(Val<i32>(at.x)) < bitcast<u32>(u.size(0)), t[at], 0.5f);
  });
  ASSERT_TRUE(form);
  EXPECT_EQ(form->extents.size(), 1u);
  EXPECT_EQ(count(form->function, Op::ilt), 0);
}

TEST(Columns, ShiftedStoresAreOfOneElement) {
  const auto form =
      form_of([](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) { b(Val<i32>(at.x) + 1) = a[at] * a[at]; });
  ASSERT_TRUE(form);
  EXPECT_EQ(form->rows, 1);
  EXPECT_EQ(form->stores, 4);
}

TEST(Columns, LeavesWhatMayDependOnOrderOrFlow) {
  EXPECT_FALSE(form_of([](At<1> at, InOut<f32, 1> a, Grid<f32, 1> b) { a[at] = a[at] + b[at]; }));
  EXPECT_FALSE(
      form_of([](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) { if_(a[at] > 0.0f, [&] { b[at] = a[at]; }); }));
  EXPECT_FALSE(form_of([](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) { b[at] = a[at]; }, {{64, 1, 1}}));
  EXPECT_FALSE(form_of([](Group<1> g, Grid<f32, 1> a, Out<f32, 1> b) { b(g.global()) = a(g.global()); },
                       {{64, 1, 1}}));
  EXPECT_FALSE(form_of([](At<2> at, Grid<f32, 2> a, Out<f32, 2> b) {
    b[at] = a(Val<i32>(at.x), Val<i32>(at.y));  // a column of the other grid is no row of it
  }));
}

TEST(Columns, EachColumnKeepsItsOperationsAndTheirOrder) {
  const auto form = form_of([](At<1> at, Grid<f32, 1> t, Out<f32, 1> out) {
    out[at] = (t[at.x(-1)] + t[at]) * t[at.x(1)] + sqrt(t[at]);
  });
  ASSERT_TRUE(form);
  EXPECT_EQ(count(form->function, Op::fadd), 4);
  EXPECT_EQ(count(form->function, Op::fma), 4);
  EXPECT_EQ(count(form->function, Op::fsqrt), 4);
  EXPECT_EQ(count(form->function, Op::fmul), 0);
}

TEST(Columns, ByPointsItIsAKernelOfAllTargets) {
  const ir::Function f = lowered(traced(heat(Boundary::periodic)));
  const ir::Function g = compile::columns_by_points(f, *compile::columns_form(f));
  ir::verify(g);
  EXPECT_EQ(count(g, Op::load), 7 + 7);  // 5 rows and 2 sides; the kernel itself
  EXPECT_EQ(count(g, Op::store), 2);
}
