// The text of printed kernels: what must be there, and what must not.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/cuda/cuda_types.hpp"
#include "compile/clike/nvrtc.hpp"
#include "compile/lower.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::clike {
namespace {

testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no `" << part << "` in\n" << text;
}
testing::AssertionResult has_not(const std::string& text, const std::string& part) {
  if (text.find(part) == std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "`" << part << "` in\n" << text;
}
template <class L>
std::string text_of(L body, KernelOptions options = {}) {
  return emit_cuda(kernel("test.text", body, options).function());
}

std::string f32_text(float v) { return cuda_literal(Type::f32, std::bit_cast<uint32_t>(v)).text; }
std::string without_comment(const std::string& text) { return text.substr(0, text.find(" /*")); }

TEST(CudaLiterals, FloatsKeepTheirBits) {
  uint32_t bits = 12345;
  for (int n = 0; n < 20000; ++n) {
    bits = bits * 1664525u + 1013904223u;
    const std::string text = without_comment(cuda_literal(Type::f32, bits).text);
    uint32_t back = 0;
    if (text.starts_with("__uint_as_float("))
      back = uint32_t(std::stoul(text.substr(16), nullptr, 16));
    else
      back = std::bit_cast<uint32_t>(std::strtof(text.c_str(), nullptr));
    ASSERT_EQ(back, bits) << text;
  }
}

TEST(CudaLiterals, SpecialValues) {
  EXPECT_EQ(f32_text(1.0f), "0x1p+0f");
  EXPECT_EQ(f32_text(0.0f), "0x0p+0f");
  EXPECT_EQ(f32_text(-0.0f), "__uint_as_float(0x80000000u)");
  EXPECT_EQ(f32_text(std::numeric_limits<float>::infinity()), "__uint_as_float(0x7f800000u)");
  EXPECT_EQ(f32_text(std::numeric_limits<float>::denorm_min()), "__uint_as_float(0x00000001u)");
  EXPECT_EQ(cuda_literal(Type::f64, std::bit_cast<uint64_t>(std::nan(""))).text,
            "__longlong_as_double(i64(0x7ff8000000000000ull))");
  EXPECT_EQ(cuda_literal(Type::i32, 0x80000000u).text, "int(0x80000000u)");
  EXPECT_EQ(cuda_literal(Type::i32, 0xffffffffu).text, "-1");
  EXPECT_EQ(cuda_literal(Type::u64, ~uint64_t(0)).text, "0xffffffffffffffffull");
}

// A counter that cannot step past the end of its type is the plain loop, which the compiler knows best.
TEST(CudaText, LoopsOverAxesArePlainAndOthersCounted) {
  const auto loop = [](auto end) {
    return kernel("test.loop",
                  [end](Group<1> g, Grid<f32, 1> in, Out<f32, 1> out, Param<i32> n) {
                    Var<f32> sum = 0.0f;
                    for_(g.lane(), end(in, n), 64, [&](Val<i32> k) { sum += in[k]; });
                    out[g.id()] = sum;
                  },
                  {.group = {64, 1, 1}});
  };
  const auto size = [](auto& in, auto&) { return in.size(0); };
  const auto part = [](auto& in, auto& n) { return min(Val<i32>(n), in.size(0) / 4 * 4); };
  const auto whole = [](auto& in, auto& n) {
    const Val<i32> end = max(min(Val<i32>(n), in.size(0)), 0);
    return end - (end - Val<i32>(n)) % 512;
  };
  const auto beyond = [](auto& in, auto&) { return in.size(0) + (1 << 20); };
  const auto number = [](auto&, auto& n) { return Val<i32>(n); };
  for (const Kernel& plain : {loop(size), loop(part), loop(whole)}) {
    EXPECT_TRUE(has(emit_cuda(plain.function()), "; i += 64)"));
    EXPECT_TRUE(has(emit_cuda(plain.function(Type::i64)), "; i += 64)"));
    EXPECT_TRUE(has(emit_cuda(plain.function(Type::i32, true)), "ls_passes<u32>"));
  }
  for (const Kernel& counted : {loop(beyond), loop(number)})
    EXPECT_TRUE(has(emit_cuda(counted.function()), "ls_passes<u32>"));
}

TEST(CudaText, PointsKernelsAreGuardedAndBounded) {
  const std::string text =
      text_of([](At<2> at, Grid<f32, 2> a, Out<f32, 2> b) { b[at] = a[at]; }, {{64, 2, 1}, 3});
  EXPECT_TRUE(has(text, "__launch_bounds__(128, 3)"));
  EXPECT_TRUE(has(text, "u32(y) >= u32(a.extent_y)"));
  EXPECT_TRUE(has(text, "__ldg("));
  EXPECT_TRUE(has_not(text, "#include"));
}

TEST(CudaText, ABlockHasNoLanesAlongAxesThatThePointsLack) {
  ir::Function f = kernel("test.line", [](At<1> at, InOut<u32, 1> a) { a[at] += 1u; }).function();
  f.group = {8, 2, 1};
  EXPECT_EQ(print_cuda(f, CudaOptions{}).block, (std::array<int32_t, 3>{8, 1, 1}));
}

TEST(CudaText, TheSameFunctionGivesTheSameText) {
  const auto body = [](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) { b[at] = sqrt(a[at]) + a[at] * 3.0f; };
  EXPECT_EQ(text_of(body), text_of(body));
}

TEST(CudaText, SignedArithmeticWrapsAndIndicesDoNot) {
  const std::string text = text_of([](At<1> at, Grid<i32, 1> a, Out<i32, 1> b) { b[at] = a[at] * 3 + 1; });
  EXPECT_TRUE(has(text, "ls_add(ls_mul("));
  EXPECT_TRUE(
      has_not(text_of([](At<2> at, Grid<u32, 2> a, Out<u32, 2> b) { b[at] = a[at.x(1)]; }), "ls_mul"));
}

TEST(CudaText, AValueOfAVariableIsThatOfItsMoment) {
  const Kernel k = kernel("test.variable", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) {
    Var<f32> v = a[at];
    const Val<f32> before = v;
    v = v + 1.0f;
    b[at] = before * v;
  });
  const std::string text = print_cuda(k.function(), CudaOptions{}).text;
  // `before` must have been named before the assignment.
  const size_t name = text.find("= r0;"), assigned = text.find("r0 = r0 +");
  ASSERT_NE(name, std::string::npos) << text;
  ASSERT_NE(assigned, std::string::npos) << text;
  EXPECT_LT(name, assigned);
}

TEST(CudaText, ALoadBeforeAStoreStaysBefore) {
  const std::string text = text_of([](At<1> at, InOut<f32, 1> a, Out<f32, 1> b) {
    const Val<f32> old = a[at];
    a[at] = 2.0f;
    b[at] = old;
  });
  const size_t load = text.find("= a.b0[x];"), store = text.find("a.b0[x] = ");
  ASSERT_NE(load, std::string::npos) << text;
  EXPECT_LT(load, store);
}

// ptxas 13.0 loses a pass of such loops where it sees the negation and unrolls.
TEST(CudaText, DownwardLoopsToANegatedBoundAreNotUnrolled) {
  const std::string text = text_of([](At<1> at, InOut<i32, 1> a) {
    Var<i32> sum = 0;
    for_(0, 0 - (Val<i32>(at.x) & 3), -1, [&](Val<i32> i) { sum += i * 3; });
    a[at] = sum;
  });
  EXPECT_TRUE(has(text, "ls_neg("));
  EXPECT_TRUE(has(text, "#pragma unroll 1"));
  EXPECT_TRUE(has(text, "not.b32"));
}

// ptxas 13.0 takes x for ~x where a branch follows from a comparison of ~x.
TEST(CudaText, ComplementsOfNumbersAreHidden) {
  const std::string text = text_of([](At<1> at, InOut<i32, 1> a, Out<u64, 1> b) {
    const Val<i32> n = ~Val<i32>(at.x);
    if_(n == -9, [&] { a[at] = n & 3; });
    b[at] = ~cast<u64>(n);
  });
  EXPECT_TRUE(has(text, "ls_not("));
  EXPECT_TRUE(has(text, "sub.u32 %0, -1, %1"));
  EXPECT_TRUE(has(text, "sub.u64 %0, -1, %1"));
  EXPECT_FALSE(has(text, "~"));
}

// ptxas 13.0 drops abs.f32 of a choice between 1 and -0.
TEST(CudaText, MagnitudesOfF32AreTakenInIntegers) {
  const std::string text = text_of([](At<1> at, InOut<f32, 1> a) { a[at] = abs(a[at]); });
  EXPECT_TRUE(has(text, "__float_as_uint(a) & 0x7fffffffu"));
  EXPECT_FALSE(has(text, "fabsf"));
}

// ptxas 13.0 makes VIMNMX.RELU of max(min(a, b), 0), and a wrong predicate of its comparison with a or b.
TEST(CudaText, MaximaOfZeroAndAMinimumAreNoMaxima) {
  const std::string text = text_of([](At<1> at, InOut<i32, 1> a, Param<i32> p) {
    const Val<i32> x = a[at];
    const Val<i32> inside = max(min(x, Val<i32>(p)), 0), other = max(Val<i32>(0), max(x, Val<i32>(p) + 1));
    a[at] = select(inside != x, inside, other) + max(x, 0);
  });
  EXPECT_TRUE(has(text, "ls_relu(min(") || has(text, "ls_relu(ls_min(")) << text;
  EXPECT_TRUE(has(text, "ls_relu(ls_max(")) << text;
  EXPECT_TRUE(has(text, "a & ~(a >> 31)"));
  const std::string clamped =
      text_of([](At<1> at, Grid<i32, 1> a, Out<i32, 1> b) { b[at] = a[at.x(+1)] - a[at.x(-1)]; });
  EXPECT_FALSE(has(clamped, "max(0, min(") || has(clamped, "max(min(")) << clamped;
}

// NVRTC 13.0 makes a maximum that ignores the sign of zeros of a comparison and a selection.
TEST(CudaText, MinimaOfFloatsAreHidden) {
  const std::string text = text_of([](At<1> at, InOut<f64, 1> a, InOut<f32, 1> b) {
    a[at] = max(Val<f64>(-0.0), a[at]);
    b[at] = min(Val<f32>(0.0f), b[at]);
  });
  EXPECT_TRUE(has(text, "setp.lt.f64") && has(text, "selp.f32")) << text;
  EXPECT_FALSE(has(text, "b < a ? b : a") || has(text, "a < b ? b : a"));
}

TEST(CudaText, ParenthesesKeepTheTree) {
  const std::string text = text_of([](At<1> at, Grid<f32, 1> a, Out<f32, 1> b, Param<f32> p, Param<f32> q) {
    b[at] = Val<f32>(p) - (Val<f32>(q) - a[at]);
  });
  EXPECT_TRUE(has(text, "a.p0 - (a.p1 - "));
}

template <class L>
CudaSource points_source(L body, bool columns = true) {
  CudaOptions options;
  options.columns = columns;
  return print_cuda(compile::lower(kernel("test.points", body).function(), {compile::Target::cuda}), options);
}
const auto five_points = [](At<2> at, Grid<f32, 2> t, Out<f32, 2> out) {
  out[at] = t[at.x(1)] + t[at.x(-1)] + t[at.y(1)] + t[at.y(-1)] - 4.0f * t[at];
};

TEST(CudaPoints, StencilsTakeFourColumns) {
  const CudaSource source = points_source(five_points);
  EXPECT_EQ(source.points, (PointsPlan{1, 4, 4}));
  EXPECT_EQ(source.block, (std::array<int32_t, 3>{64, 4, 1}));
  EXPECT_EQ(source.covered, (std::array<int32_t, 3>{256, 16, 1}));
  EXPECT_TRUE(has(source.text, "(u64(a.b0) | u64(a.b1)) % 16u == 0u && ((a.b0_s0 | a.b1_s0) & 3) == 0"));
  EXPECT_TRUE(has(source.text, "(blockIdx.x * 64u + threadIdx.x) * 4u"));
  EXPECT_TRUE(has(source.text, "u32(x) + 3u < u32(a.extent_x) && x + 3 < a.b0_n1"));
  EXPECT_TRUE(has(source.text, "inner_columns(a, x, y + k);"));
  // Rows that begin elsewhere: lanes side by side, columns a block apart.
  EXPECT_TRUE(has(source.text, "blockIdx.x * 256u + threadIdx.x + 64u * c"));
  EXPECT_FALSE(source.fine_entry.empty());
}

TEST(CudaPoints, OfLanesInsideOnlyTheSidesHaveARule) {
  const std::string text = points_source(five_points).text;
  const size_t from = text.find("void inner_columns"), to = text.find("\n}\n", from);
  ASSERT_NE(from, std::string::npos) << text;
  const std::string body = text.substr(from, to - from);
  EXPECT_TRUE(has(body, "ls_clamp_index(x - 1, a.b0_n1)"));
  EXPECT_TRUE(has(body, "ls_clamp_index(x + 4, a.b0_n1)"));
  EXPECT_TRUE(has_not(body, "ls_clamp_index(y"));
}

TEST(CudaPoints, ColumnsAreTakenWhereTheyPay) {
  const auto plan = [](auto body) { return points_source(body).points; };
  EXPECT_EQ(points_source(five_points, false).points, (PointsPlan{1, 4, 1}));
  // Rows that are read once: lanes side by side move as many bytes.
  EXPECT_EQ(plan([](At<2> at, Grid<f32, 2> a, Out<f32, 2> b) { b[at] = a[at]; }), (PointsPlan{0, 4, 1}));
  EXPECT_EQ(
      plan([](At<1> at, Grid<f32, 1> a, Grid<f32, 1> c, Out<f32, 1> b) { b[at] = a[at] * 2.0f + c[at]; }),
      (PointsPlan{0, 4, 1}));
  // More single loads than rows; rows that are read at one column.
  EXPECT_EQ(
      plan([](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) { b[at] = max(max(a[at], a[at.x(1)]), a[at.x(2)]); }),
      (PointsPlan{0, 4, 1}));
  EXPECT_EQ(
      plan([](At<2> at, Grid<f32, 2> a, Out<f32, 2> b) { b[at] = max(max(a[at], a[at.y(1)]), a[at.y(2)]); }),
      (PointsPlan{1, 4, 1}));
  // Elements of 8 bytes; more rows than there are registers for.
  EXPECT_EQ(plan([](At<2> at, Grid<f64, 2> a, Out<f64, 2> b) { b[at] = a[at.x(1)] + a[at.y(1)]; }),
            (PointsPlan{1, 4, 1}));
  const ir::Function f =
      compile::lower(kernel("test.points", five_points).function(), {compile::Target::cuda});
  compile::ColumnsForm form = compile::columns_form(f).value();
  EXPECT_TRUE(choose_columns(f, form));
  form.accesses_of_points = 200;
  form.rows = 17;
  EXPECT_FALSE(choose_columns(f, form));
  // Without rows to share there is one point of four columns.
  EXPECT_EQ(plan([](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) { b[at] = a[at.x(1)] - a[at]; }),
            (PointsPlan{0, 1, 4}));
}

TEST(CudaText, SharedMemoryAboveTheStaticLimitIsDynamic) {
  const auto body = [](int count) {
    return kernel("test.shared",
                  [=](Group<1> g, Out<f32, 1> out) {
                    SharedArray<f32> s(count);
                    s[g.lane()] = 1.0f;
                    barrier();
                    out[g.global()] = Val<f32>(s[0]);
                  },
                  {{32, 1, 1}});
  };
  const CudaSource small = print_cuda(body(1000).function(), CudaOptions{}),
                   big = print_cuda(body(20000).function(), CudaOptions{});
  EXPECT_EQ(small.dynamic_shared_bytes, 0);
  EXPECT_TRUE(has(small.text, "__shared__ __align__(16) float s0[1000];"));
  EXPECT_EQ(big.dynamic_shared_bytes, 80000);
  EXPECT_TRUE(has(big.text, "extern __shared__"));
}

TEST(CudaArguments, OnlyUsedFieldsWithoutGaps) {
  const Kernel k =
      kernel("test.arguments", [](At<2> at, Grid<f32, 2>, Grid<f32, 2> used, Out<f64, 2> out, Param<bool>,
                                  Param<f64> p) { out[at] = Val<f64>(p) + cast<f64>(Val<f32>(used[at])); });
  const ir::Function lowered = compile::lower(k.function(), {compile::Target::cuda});
  const ArgumentLayout some = argument_layout(lowered), all = argument_layout(lowered, true);
  uint32_t end = 0;
  for (const ArgumentField& field : some.fields) {
    EXPECT_EQ(field.offset, end);
    EXPECT_FALSE(field.kind == ArgumentKind::buffer && field.index == 0);
    EXPECT_FALSE(field.kind == ArgumentKind::scalar && field.index == 0);
    end += field.bytes;
  }
  EXPECT_LE(end, some.bytes);
  EXPECT_GT(all.fields.size(), some.fields.size());
  EXPECT_NE(argument_struct(k.function(), all).find("u32 p0;"), std::string::npos);
}

TEST(CudaHelpers, OnlyUsedOnesInOrder) {
  const Helper table[] = {
      {"ls_a", "int ls_a();"}, {"ls_b", "int ls_b() { return ls_a(); }"}, {"ls_c", "int ls_c();"}};
  EXPECT_EQ(used_helpers(table, "x = ls_b();"), "int ls_a();\nint ls_b() { return ls_a(); }\n");
  EXPECT_EQ(used_helpers(table, "x = my_ls_b + ls_bc;"), "");
}

}  // namespace
}  // namespace lockstep::clike
