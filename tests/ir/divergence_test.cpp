#include "ir/divergence.hpp"

#include <gtest/gtest.h>

#include "lockstep/kernel/kernel.hpp"

using namespace lockstep;
using ir::Form;
using Scope = ir::LaneScope;

namespace {

/// Forms of the values that `body` stores, in order.
template <class Body>
std::vector<Form> stored(Scope scope, Body body, KernelOptions options = {}) {
  const Kernel k = kernel("test.forms", body, options);
  const ir::Function& f = k.function();
  const ir::Divergence u(f, scope);
  std::vector<Form> forms;
  for (ir::Id id = 0; id < f.instructions.size(); ++id)
    if (f[id].op == ir::Op::store) forms.push_back(u[f[id].args[1]]);
  return forms;
}
template <class Body>
std::vector<Form> offsets(Body body) {
  const Kernel k = kernel("test.forms", body);
  const ir::Function& f = k.function();
  const ir::Divergence u(f, Scope::row);
  std::vector<Form> forms;
  for (ir::Id id = 0; id < f.instructions.size(); ++id)
    if (f[id].op == ir::Op::load) forms.push_back(u[f[id].args[0]]);
  return forms;
}

}  // namespace

TEST(Divergence, ShiftedRowsAreLinear) {
  const auto forms = offsets([](At<2> at, Grid<f32, 2> t, Out<f32, 2> out) {
    const auto u = t.unchecked();
    out[at] = t[at];
    out[at] = u[at.x(+1)];
    out[at] = u[at.y(-1)];
    out[at] = t[at.x(+1)];
    out[at] = t(at.x, at.y);
    out[at] = t(at.y, 2 * at.x + 1);
    out[at] = t(0, 3);
  });
  ASSERT_EQ(forms.size(), 7u);
  EXPECT_TRUE(forms[0].is_linear(1) && forms[0].exact);
  EXPECT_TRUE(forms[1].is_linear(1) && forms[1].exact);
  EXPECT_TRUE(forms[2].is_linear(1));
  EXPECT_EQ(forms[3].kind, Form::varying);  // clamped at the edges
  EXPECT_EQ(forms[4].kind, Form::varying);  // a column: stride known at run time only
  EXPECT_TRUE(forms[5].is_linear(2) && !forms[5].exact);
  EXPECT_TRUE(forms[6].is_uniform());
}

TEST(Divergence, VariablesUnderDivergence) {
  const auto forms = stored(Scope::row, [](At<2> at, Param<i32> n, Grid<i32, 1> table, Out<i32, 2> out) {
    Var<i32> same = 1, line = Val<i32>(at.x), differs = 0, counter = 0;
    for_(0, n, [&](Val<i32> i) {
      same += table(i);
      line += 2;
      break_if(Val<i32>(same) > 7);
    });
    if_(at.x > 3, [&] {
      Var<i32> inner = 5;
      inner += n;
      out[at] = inner;  // uniform among the lanes that are here
      differs = 1;
    });
    loop_([&] {
      counter += 1;
      break_if(Val<i32>(counter) > at.x);
    });
    out[at] = same;
    out[at] = line;
    out[at] = differs;
    out[at] = counter;
    out[at] = at.y * n;
  });
  ASSERT_EQ(forms.size(), 6u);
  EXPECT_TRUE(forms[0].is_uniform());
  EXPECT_TRUE(forms[1].is_uniform());
  EXPECT_TRUE(forms[2].is_linear(1));
  EXPECT_EQ(forms[3].kind, Form::varying);
  EXPECT_EQ(forms[4].kind, Form::varying);
  EXPECT_TRUE(forms[5].is_uniform());
}

TEST(Divergence, DivergentContinueHidesTheRestOfTheBody) {
  const auto forms = stored(Scope::row, [](At<1> at, Param<i32> n, Out<i32, 1> out) {
    Var<i32> before = 0, after = 0;
    for_(0, n, [&](Val<i32> i) {
      before += i;
      continue_if(at.x == i);
      after += i;
      Var<i32> inside = i;
      inside += 1;
      out[at] = inside;
    });
    out[at] = before;
    out[at] = after;
  });
  ASSERT_EQ(forms.size(), 3u);
  EXPECT_TRUE(forms[0].is_uniform());
  EXPECT_TRUE(forms[1].is_uniform());
  EXPECT_EQ(forms[2].kind, Form::varying);
}

TEST(Divergence, LocalArrays) {
  const auto forms = stored(Scope::group, [](At<1> at, Param<i32> n, Out<i32, 1> out) {
    LocalArray<i32> same(4), differs(4);
    for_(0, 4, [&](Val<i32> i) { same[i] = i * n; });
    differs[at.x & 3] = 1;
    out[at] = same[2];
    out[at] = same[at.x & 3];
    out[at] = differs[2];
  });
  EXPECT_TRUE(forms[0].is_uniform());
  EXPECT_EQ(forms[1].kind, Form::varying);
  EXPECT_EQ(forms[2].kind, Form::varying);
}

TEST(Divergence, WhereLanesAreAbsent) {
  const Kernel k = kernel("test.absent",
                          [](Group<1> g, Param<i32> n, Out<i32, 1> out) {
                            const auto mark = [&](int number) { out(g.lane()) = number; };
                            mark(0);
                            for_(0, n, [&](Val<i32> i) {
                              mark(1);
                              continue_if(g.lane() == i);
                              mark(2);
                            });
                            if_(n > 3, [&] { mark(3); });
                            loop_([&] {
                              mark(4);
                              break_if(g.lane() < n);
                            });
                            mark(5);
                            if_(g.lane() < 5, [&] { return_(); });
                            mark(6);
                          },
                          {.group = {32}});
  const ir::Function& f = k.function();
  const ir::Divergence divergence(f, Scope::group);
  std::vector<bool> absent;
  for (ir::Id id = 0; id < f.instructions.size(); ++id)
    if (f[id].op == ir::Op::store) absent.push_back(divergence.in_divergent_flow(id));
  EXPECT_EQ(absent, (std::vector<bool>{false, false, true, false, true, false, true}));
}

TEST(Divergence, GroupAndRowScopes) {
  const auto body = [](Group<2> g, Out<i32, 1> out) {
    out(0) = g.local(0);
    out(0) = g.local(1);
    out(0) = g.lane();
    out(0) = g.id(0);
  };
  const auto row = stored(Scope::row, body, {{16, 4, 1}}), group = stored(Scope::group, body, {{16, 4, 1}});
  EXPECT_TRUE(row[0].is_linear(1));
  EXPECT_TRUE(row[1].is_uniform());
  EXPECT_TRUE(row[2].is_linear(1));
  EXPECT_TRUE(row[3].is_uniform());
  EXPECT_EQ(group[0].kind, Form::varying);
  EXPECT_EQ(group[1].kind, Form::varying);
  EXPECT_EQ(group[2].kind, Form::varying);
  EXPECT_TRUE(group[3].is_uniform());
}
