#include "compile/passes/structure/dead_code.hpp"

#include <gtest/gtest.h>

#include "helpers.hpp"

using namespace lockstep;
using ir::Op;

namespace {
template <class Body>
ir::Function cleaned(Body body, KernelOptions options = {}) {
  ir::Function f = traced(body, options);
  compile::dead_code(f);
  ir::verify(f);
  return f;
}
}  // namespace

TEST(DeadCode, DropsWhatNoEffectNeeds) {
  const auto f = cleaned([](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    const Val<f32> unused = sqrt(a(at.x + 7));
    (void)unused;
    Var<f32> never_read = 1.0f;
    LocalArray<f32> written_only(4);
    for_(0, 4, [&](Val<i32> i) {
      written_only[i] = 1.0f;
      never_read = 2.0f;
      break_if(i > 2);
    });
    out[at] = 3.0f;
  });
  EXPECT_EQ(count(f, Op::fsqrt), 0);
  EXPECT_EQ(count(f, Op::load), 0);
  EXPECT_EQ(count(f, Op::for_), 0);
  EXPECT_EQ(count(f, Op::variable), 0);
  EXPECT_EQ(count(f, Op::local_store), 0);
  EXPECT_EQ(f.instructions.size(), 3u);
}

TEST(DeadCode, KeepsBarriersReductionsAtomicsAndReturns) {
  const auto f = cleaned(
      [](Group<1> g, InOut<u32, 1> a) {
        barrier();
        const Val<u32> unused = group_sum(Val<u32>(1u));
        const Val<u32> old = a.atomic_add(0, unused * 0u);
        (void)old;
        return_if(g.lane() > 3);
        a(g.lane() + 1) = 1u;
      },
      {{32, 1, 1}});
  EXPECT_EQ(count(f, Op::barrier), 1);
  EXPECT_EQ(count(f, Op::group_reduce), 1);
  EXPECT_EQ(count(f, Op::atomic), 1);
  EXPECT_EQ(count(f, Op::return_), 1);
}

TEST(DeadCode, KeepsAsynchronousCopiesAndTheirEnds) {
  const auto f = cleaned(
      [](Group<1> g, Grid<f32, 1> x, Out<f32, 1> out) {
        const SharedArray<f32> s(32);
        x.copy_async(s, g.lane(), g.lane());
        async_commit();
        async_wait(0);
        barrier();
        out(g.lane()) = s[31 - g.lane()];
      },
      {{32, 1, 1}});
  for (const Op op : {Op::async_copy, Op::async_commit, Op::async_wait, Op::barrier})
    EXPECT_EQ(count(f, op), 1) << name(op);
}

TEST(DeadCode, KeepsJumpsOfLiveLoops) {
  const auto f = cleaned([](At<1> at, Out<i32, 1> out) {
    Var<i32> n = 0;
    loop_([&] {
      n += 1;
      break_if(Val<i32>(n) > at.x);
    });
    out[at] = n;
  });
  EXPECT_EQ(count(f, Op::loop), 1);
  EXPECT_EQ(count(f, Op::break_), 1);
}

TEST(DeadCode, CutsBehindJumpsAndJumpsToNowhere) {
  const auto f = cleaned([](At<1> at, Out<i32, 1> out) {
    for_(0, 3, [&](Val<i32> i) {
      if_(at.x > 1, [&] {
        continue_();
        out[at] = 9;
      });
      out[at] = i;
      continue_();
    });
    return_();
    out[at] = 10;
  });
  EXPECT_EQ(count(f, Op::store), 1);
  EXPECT_EQ(count(f, Op::return_), 0);
  EXPECT_EQ(count(f, Op::continue_), 1);  // the one under the condition
}

TEST(DeadCode, EqualKernelsBecomeEqual) {
  const auto trace = [](bool garbage) {
    return cleaned([garbage](At<1> at, Out<f32, 1> out) {
      if (garbage) (void)Val<f32>(5.0f);
      out[at] = 1.0f;
    });
  };
  EXPECT_EQ(ir::fingerprint(trace(false)), ir::fingerprint(trace(true)));
}
