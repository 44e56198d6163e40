// Properties of the WGSL text that need no adapter.
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/clike/wgsl/wgsl.hpp"
#include "compile/clike/wgsl/wgsl_fixed.hpp"
#include "compile/lower.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep {
namespace {

clike::WgslSource print(const Kernel& k, clike::WgslOptions options = {}) {
  return clike::print_wgsl(compile::lower(k.function(), {compile::Target::wgsl, options.numerics}), options);
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

Kernel axpy() {
  return kernel("axpy",
                [](At<1> at, Grid<f32, 1> x, InOut<f32, 1> y, Param<f32> a) { y[at] = a * x[at] + y[at]; });
}

TEST(WgslPrint, TheSameTextForTheSameFunction) { EXPECT_EQ(print(axpy()).text, print(axpy()).text); }

TEST(WgslPrint, OnlyWordsThatAreUsed) {
  using Kind = clike::WgslWord::Kind;
  const auto source = print(axpy());
  const auto words_of = [&](Kind kind) {
    return std::count_if(source.words.begin(), source.words.end(),
                         [&](const auto& w) { return w.kind == kind; });
  };
  EXPECT_EQ(words_of(Kind::extent), 1);
  EXPECT_EQ(words_of(Kind::offset), 1);
  EXPECT_EQ(words_of(Kind::scalar), 1);
  EXPECT_EQ(words_of(Kind::shape) + words_of(Kind::stride) + words_of(Kind::base), 0);
  ASSERT_EQ(source.bindings.size(), 2u);
  EXPECT_FALSE(source.bindings[0].writable);
  EXPECT_TRUE(source.bindings[1].writable);
}

TEST(WgslPrint, WindowsAndBasesGoThroughAccessors) {
  clike::WgslOptions options;
  options.window_bytes = 1024;
  options.buffers = {{3, true, false}, {1, false, false}};
  const auto source = print(axpy(), options);
  EXPECT_EQ(source.bindings.size(), 4u);
  EXPECT_TRUE(has(source.text, "b0_2[at - 512u]")) << source.text;
  EXPECT_TRUE(has(source.text, "fn b0_load("));
  EXPECT_FALSE(has(source.text, "fn b1_load("));
  EXPECT_TRUE(std::any_of(source.words.begin(), source.words.end(), [](const auto& w) {
    return w.kind == clike::WgslWord::Kind::base && w.index == 0;
  }));
}

TEST(WgslPrint, NarrowStoresAreAtomic) {
  const auto source =
      print(kernel("narrow", [](At<1> at, Grid<f16, 1> x, Out<uint8_t, 1> y) { y[at] = cast<u32>(x[at]); }));
  EXPECT_TRUE(has(source.text, "b0: array<u32>"));
  EXPECT_TRUE(has(source.text, "b1: array<atomic<u32>>"));
  EXPECT_TRUE(has(source.text, "atomicOr("));
}

TEST(WgslPrint, ConstantsThatAreNotFiniteAreHiddenFromTheCompiler) {
  const auto source = print(kernel("nan", [](At<1> at, Out<f32, 2> o) {
    o(0, Val<i32>(at.x)) = Val<f32>(std::numeric_limits<float>::quiet_NaN());
    o(1, Val<i32>(at.x)) = Val<f32>(std::numeric_limits<float>::infinity());
  }));
  EXPECT_TRUE(has(source.text, "0x7fc00000u + ls_hidden"));
  EXPECT_TRUE(has(source.text, "0x7f800000u + ls_hidden"));
}

TEST(WgslPrint, ReductionIsTheTree) {
  const auto source = print(
      kernel("sum", [](Group<1> g, Grid<f32, 1> a, Out<f32, 1> o) { o(g.id()) = group_sum(a(g.global())); },
             {{64, 1, 1}, 0}));
  EXPECT_TRUE(has(source.text, "if (lane < 32i)"));
  EXPECT_TRUE(has(source.text, "ls_tree_f32: array<f32, 64>"));
}

TEST(WgslPrint, FastNumericsUseTheHardware) {
  const Kernel k = kernel("fast", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) {
    o[at] = exp(a[at]) / sqrt(a[at]) + fma(a[at], a[at], 1.0f);
  });
  clike::WgslOptions options;
  options.numerics = Numerics::fast;
  const auto text = print(k, options).text;
  EXPECT_TRUE(has(text, "exp(") && has(text, "sqrt(") && has(text, "fma("));
  EXPECT_FALSE(has(text, "ls_"));
  const auto exact = print(k).text;
  EXPECT_TRUE(has(exact, "ls_div(") && has(exact, "ls_sqrt(") && has(exact, "ls_fma("));
}

/// SwiftShader's compiler takes exponential time in branches, llvmpipe's long in blocks without them.
TEST(WgslPrint, TheComputedFmaBranchesWhereItIsAskedTo) {
  const Kernel k =
      kernel("fused", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> o) { o[at] = fma(a[at], a[at], 1.0f); });
  clike::WgslOptions options;
  EXPECT_FALSE(has(print(k, options).text, "&&") || has(print(k, options).text, "||"));
  EXPECT_TRUE(has(print(k, options).text, "select(special, r, finite & ((p != 0.0f) | (c != 0.0f)))"));
  options.branches = true;
  EXPECT_TRUE(has(print(k, options).text, "select(special, r, finite && ((p != 0.0f) || (c != 0.0f)))"));
}

TEST(WgslPrint, ProductsThatReachSumsAreKeptApart) {
  clike::WgslOptions options;
  options.native_fma = options.native_division = true;
  const Kernel k = kernel("parts", [](At<1> at, Grid<f32, 1> a, Grid<f32, 1> b, Out<f32, 1> o) {
    const Val<f32> s = a[at] + b[at];
    o[at] = (s - a[at]) * b[at];
  });
  EXPECT_EQ(count(print(k, options).text, "^ zero)"), 1);
  options.fixed_arithmetic = false;
  EXPECT_EQ(count(print(k, options).text, "^ zero)"), 0);
}

// Compilers of SPIR-V miscount downward loops whose bound they see to be a negation.
TEST(WgslPrint, NegationsAndDownwardBoundsAreHidden) {
  const Kernel k = kernel("down", [](At<1> at, InOut<i32, 1> a, Param<i32> p) {
    const Val<i32> x = at.x;
    Var<i32> sum = 0;
    const auto add = [&](Val<i32> i) { sum += i * 3; };
    for_(0, 0 - (x & 3), -1, add);
    for_(x, x * -1, -2, add);
    for_(x, p, -1, [&](Val<i32> i) { for_(9, i, -1, add); });
    for_(9, -4, -1, add);
    for_(-x, p, 1, add);
    a[at] = sum + abs(x);
  });
  for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
    clike::WgslOptions options;
    options.numerics = numerics;
    const std::string text = print(k, options).text;
    EXPECT_EQ(count(text, "> ls_bound_i32("), 4) << text;
    EXPECT_EQ(count(text, "let v2: i32 = -4i;"), 1) << text;
    EXPECT_EQ(count(text, "i > v2;"), 1) << text;
    EXPECT_EQ(count(text, "(~x ^ ls_zero) + 1u"), 1);
    EXPECT_FALSE(has(text, " 0i - ") || has(text, " -v") || has(text, "abs(v")) << text;
    EXPECT_TRUE(has(text, "ls_zero = A["));
  }
}

TEST(WgslPrint, RefusesWideTypes) {
  const Kernel k = kernel("f64", [](At<1> at, Grid<f64, 1> a, Out<f64, 1> o) { o[at] = a[at]; });
  EXPECT_NE(clike::wgsl_refusal(k.function()).find("f64"), std::string::npos);
  EXPECT_THROW(print(k), UnsupportedError);
  EXPECT_THROW(clike::emit_wgsl(k.function(), Numerics::exact), UnsupportedError);
  EXPECT_FALSE(clike::wgsl_refusal(axpy().function(Type::i64)).empty());
  EXPECT_TRUE(has(clike::emit_wgsl(axpy().function(), Numerics::exact), "fn main("));
}

TEST(WgslPrint, ComparisonsInArgumentsAreNoTemplates) {
  // f(a < b, c >> d) begins with a template of WGSL: f(a<b, c>, > d).
  const Kernel k = kernel("test.compared", [](At<1> at, Grid<i32, 1> in, Out<i32, 1> out, Param<f32> p) {
    const auto chosen = function("chosen", [](const Val<bool>& first, const Val<i32>& a) {
      return select(first, a * a, a - 1) + a / 3 + a % 5;
    });
    out[at] = chosen(p < 0.25f, in[at] >> 3) + chosen(in[at] < 7, in[at] >> 2);
  });
  const std::string text = print(k).text;
  EXPECT_TRUE(has(text, "(p0 < 0.25f)")) << text;
}

TEST(WgslPrint, MagnitudesOfUnsignedNumbersBindAsTheirOperand) {
  const Kernel k = kernel("test.magnitude", [](At<1> at, Grid<u32, 1> in, Out<u32, 1> out) {
    out[at] = in[at] * 5u + abs(in[at] << 4u);
  });
  EXPECT_TRUE(has(print(k).text, "* 5u + (")) << print(k).text;
}

TEST(WgslPrint, LanesTakeSeveralPoints) {
  const Kernel k = kernel("test.copy", [](At<2> at, Grid<f32, 2> in, Out<f32, 2> out) { out[at] = in[at]; });
  const std::string text = print(k).text;
  EXPECT_TRUE(has(text, "@workgroup_size(64, 4, 1)")) << text;
  EXPECT_TRUE(has(text, "point(at_x + 192i, at_y);")) << text;
  // Loops are not repeated.
  const Kernel looping = kernel("test.loop", [](At<1> at, Grid<f32, 1> in, Out<f32, 1> out, Param<i32> n) {
    Var<f32> sum = 0.0f;
    for_(0, n, [&](const Val<i32>& i) { sum += in[at] * cast<f32>(i); });
    out[at] = sum;
  });
  EXPECT_FALSE(has(print(looping).text, "fn point("));
}

TEST(WgslPrint, GroupsFitTheLimit) {
  const Kernel k = kernel("cube", [](At<3> at, Out<f32, 3> o) { o[at] = 1.0f; });
  for (int64_t lanes : {1, 2, 16, 64, 256}) {
    const auto g = clike::wgsl_group(k.function(), lanes);
    EXPECT_LE(int64_t(g[0]) * g[1] * g[2], lanes);
    EXPECT_GE(int64_t(g[0]) * g[1] * g[2] * 2, std::min<int64_t>(lanes, 256));
  }
}

}  // namespace
}  // namespace lockstep
