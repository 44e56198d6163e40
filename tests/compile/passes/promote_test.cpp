#include "compile/passes/structure/promote.hpp"

#include <gtest/gtest.h>

#include "compile/passes/structure/dead_code.hpp"
#include "helpers.hpp"

using namespace lockstep;
using ir::Op;

namespace {
template <class Body>
ir::Function promoted(Body body) {
  ir::Function f = traced(body);
  compile::promote(f);
  ir::verify(f);
  compile::dead_code(f);
  ir::verify(f);
  return f;
}
}  // namespace

TEST(Promote, AVariableSetOnceIsItsValue) {
  const auto f = promoted([](At<1> at, Param<f32> p, Out<f32, 1> out) {
    Var<f32> x = 1.0f;
    x = Val<f32>(p) + 2.0f;
    if_(at.x > 0, [&] { out[at] = x; });
  });
  EXPECT_EQ(count(f, Op::variable), 0);
  EXPECT_EQ(stored(f).op, Op::fadd);
}

TEST(Promote, ForgetsBehindBranchesAndForLoops) {
  const auto branch = promoted([](At<1> at, Out<i32, 1> out) {
    Var<i32> x = 1;
    if_(at.x > 0, [&] { x = 2; });
    out[at] = x;
  });
  EXPECT_EQ(stored(branch).op, Op::get);
  const auto loop = promoted([](At<1> at, Param<i32> n, Out<i32, 1> out) {
    Var<i32> x = 1, untouched = 7;
    for_(0, n, [&](Val<i32>) {
      out[at] = Val<i32>(x) + untouched;
      x += 1;
    });
  });
  EXPECT_EQ(count(loop, Op::variable), 1);
  EXPECT_EQ(loop[stored(loop).args[0]].op == Op::get || loop[stored(loop).args[1]].op == Op::get, true);
}

// A read in a branch is not known behind it, nor in the other one.
TEST(Promote, ReadsInBranchesServeTheirBranchAlone) {
  const auto f = promoted([](At<1> at, Param<i32> n, Out<i32, 1> out, Out<i32, 1> other) {
    Var<i32> x = 1;
    for_(0, n, [&](Val<i32>) { x += 1; });
    if_(at.x > 0, [&] { out[at] = Val<i32>(x) * x; }, [&] { out[at] = -x; });
    other[at] = x;
  });
  EXPECT_EQ(count(f, Op::get), 4);  // the loop, both branches, behind them
}

TEST(Promote, ArraysAtConstantIndicesBecomeValues) {
  const auto f = promoted([](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    LocalArray<f32> r(3), kept(4);
    for (int k = 0; k < 3; ++k) r[k] = a(k);
    kept[at.x & 3] = 1.0f;
    out[at] = r[0] + r[1] * r[2];
    out[at] = kept[0];
  });
  EXPECT_EQ(f.locals.size(), 1u);
  EXPECT_EQ(count(f, Op::local_load), 1);
  EXPECT_EQ(count(f, Op::variable), 0);
  EXPECT_EQ(f.locals[0].count, 4);
}

TEST(Promote, IndicesOutsideKeepTheArray) {
  const auto f = promoted([](At<1> at, Out<f32, 1> out) {
    LocalArray<f32> r(3);
    r[0] = 1.0f;
    out[at] = r[3];
  });
  EXPECT_EQ(f.locals.size(), 1u);
}
