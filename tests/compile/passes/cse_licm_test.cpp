#include <gtest/gtest.h>

#include "compile/passes/expressions/cse.hpp"
#include "compile/passes/structure/licm.hpp"
#include "helpers.hpp"

using namespace lockstep;
using ir::Op;

namespace {
template <class Body>
ir::Function merged(Body body, KernelOptions options = {}) {
  ir::Function f = traced(body, options);
  compile::cse(f);
  ir::verify(f);
  return f;
}
template <class Body>
ir::Function moved(Body body, KernelOptions options = {}) {
  ir::Function f = merged(body, options);
  compile::licm(f);
  ir::verify(f);
  return f;
}
/// Number of instructions of `op` in the body itself, outside of every branch and loop.
int at_top(const ir::Function& f, Op op) {
  int n = 0;
  for (ir::Id id : f.blocks[0]) n += f[id].op == op;
  return n;
}
}  // namespace

TEST(Cse, MergesEqualValuesAndReadOnlyLoads) {
  const auto f =
      merged([](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) { out[at] = a[at] * a[at] + a[at] * a[at]; });
  EXPECT_EQ(count(f, Op::load), 1);
  EXPECT_EQ(count(f, Op::fmul), 1);
  EXPECT_EQ(count(f, Op::coord), 1);
}

TEST(Cse, LeavesLoadsOfWrittenBuffersAndSharedArrays) {
  const auto f = merged(
      [](Group<1> g, InOut<f32, 1> a) {
        SharedArray<f32> s(32);
        s[g.lane()] = a(g.lane());
        barrier();
        const Val<f32> x = s[g.lane() ^ 1];
        barrier();
        const Val<f32> y = s[g.lane() ^ 1];
        a(g.lane()) = x + y;
        a(g.lane()) = x * a(g.lane());
      },
      {{32, 1, 1}});
  EXPECT_EQ(count(f, Op::shared_load), 2);
  EXPECT_EQ(count(f, Op::load), 2);
}

TEST(Cse, SiblingBranchesDoNotShare) {
  const auto f = merged([](At<1> at, Param<f32> p, Out<f32, 1> out) {
    if_(at.x > 3, [&] { out[at] = Val<f32>(p) + 1.0f; }, [&] { out[at] = (Val<f32>(p) + 1.0f) * 2.0f; });
  });
  EXPECT_EQ(count(f, Op::fadd), 2);
  const auto g = merged([](At<1> at, Param<f32> p, Out<f32, 1> out) {
    out[at] = Val<f32>(p) + 1.0f;
    if_(at.x > 3, [&] { out[at] = (Val<f32>(p) + 1.0f) * 2.0f; });
  });
  EXPECT_EQ(count(g, Op::fadd), 1);
}

TEST(Cse, AStatementOfUniformityStaysInItsBranch) {
  const auto f = merged(
      [](Group<1> g, Out<i32, 1> out) {
        out(g.lane()) = g.lane() + 1;
        if_(g.lane() < 32, [&] { out(g.lane()) = uniform((g.lane() + 1) / 32); });
      },
      {{64, 1, 1}});
  EXPECT_EQ(at_top(f, Op::idiv), 0);
}

TEST(Cse, OneElementIsNotSeveral) {
  const auto f = merged([](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    const auto four = a.wide<4>(at.x * 4);
    out[at] = a(at.x * 4) + four[3];
  });
  EXPECT_EQ(count(f, Op::load), 2);
}

// A sum that may wrap and an equal one that must not are one that may.
TEST(Cse, AMergedSumMayWrapWhereOneOfThemMay) {
  for (const uint8_t first : {uint8_t(0), uint8_t(ir::kNoWrap)})
    for (const uint8_t second : {uint8_t(0), uint8_t(ir::kNoWrap)}) {
      const auto f = merged([&](At<1> at, Param<i32> x, Out<i32, 1> out, Out<i32, 1> other) {
        const auto sum = [&](uint8_t flags) {
          const ir::Id terms[] = {Val<i32>(x).id(), Val<i32>(at.x).id()};
          return Val<i32>::from(detail::builder().op(Op::iadd, {terms[0], terms[1]}, flags));
        };
        out[at] = sum(first);
        other[at] = sum(second);
      });
      ASSERT_EQ(count(f, Op::iadd), 1);
      EXPECT_EQ(f[find(f, Op::iadd)].flags & ir::kNoWrap, first & second);
    }
}

TEST(Licm, MovesInvariantValuesOutOfNestedLoopsAndBranches) {
  const auto f = moved([](At<1> at, Param<f32> p, Param<i32> n, Out<f32, 1> out) {
    Var<f32> sum = 0.0f;
    for_(0, n, [&](Val<i32> i) {
      for_(0, n, [&](Val<i32> j) {
        sum += sqrt(Val<f32>(p));
        if_(i == j, [&] { sum += cast<f32>(i) + abs(Val<f32>(p)); });
      });
    });
    out[at] = sum;
  });
  EXPECT_EQ(at_top(f, Op::fsqrt), 1);
  EXPECT_EQ(at_top(f, Op::fabs), 1);
  EXPECT_EQ(at_top(f, Op::convert), 0);  // depends on the outer counter
}

TEST(Licm, LoadsMoveOnlyWhereTheySurelyRun) {
  const auto maybe = moved([](At<1> at, Grid<f32, 1> a, Param<i32> n, Out<f32, 1> out) {
    Var<f32> sum = 0.0f;
    for_(0, n, [&](Val<i32>) { sum += a(0); });
    out[at] = sum;
  });
  EXPECT_EQ(at_top(maybe, Op::load), 0);
  const auto surely = moved([](At<1> at, Grid<f32, 1> a, Param<i32> n, Out<f32, 1> out) {
    Var<f32> sum = 0.0f;
    for_(0, 3, [&](Val<i32> i) {
      sum += a(0);
      break_if(i > n);
      sum += a(1);
    });
    out[at] = sum;
  });
  EXPECT_EQ(at_top(surely, Op::load), 1);
  EXPECT_EQ(count(surely, Op::load), 2);
}

// A load that some pass skips may be one of an element that is not there.
TEST(Licm, LoadsBehindJumpsAndInBranchesStay) {
  const auto loads_at_top = [](auto pass) {
    return at_top(moved([&](At<1> at, Grid<f32, 1> a, Param<i32> n, Out<f32, 1> out) {
                    Var<f32> sum = 0.0f;
                    for_(0, 3, [&](Val<i32> i) { pass(i > n, [&] { sum += a(1); }); });
                    out[at] = sum;
                  }),
                  Op::load);
  };
  EXPECT_EQ(loads_at_top([](auto, auto add) { add(); }), 1);
  EXPECT_EQ(loads_at_top([](auto rarely, auto add) { if_(rarely, [&] { add(); }); }), 0);
  EXPECT_EQ(loads_at_top([](auto rarely, auto add) { continue_if(rarely), add(); }), 0);
  EXPECT_EQ(loads_at_top([](auto rarely, auto add) { return_if(rarely), add(); }), 0);
}

TEST(Licm, AStatementOfUniformityStaysInItsLoop) {
  const auto f = moved(
      [](Group<1> g, Param<i32> n, Out<i32, 1> out) {
        for_(0, n, [&](Val<i32> i) { if_(g.lane() < 4, [&] { out(i) = uniform(Val<i32>(n) * 2); }); });
      },
      {{32, 1, 1}});
  EXPECT_EQ(at_top(f, Op::imul), 1);
  EXPECT_EQ(at_top(f, Op::uniform), 0);
}
