#include "compile/passes/expressions/simplify.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "helpers.hpp"

using namespace lockstep;
using ir::Op;

namespace {
/// The value that the kernel stores, simplified.
template <class T, class Body>
std::pair<ir::Function, ir::Instruction> simplified(Body body) {
  ir::Function f = traced(
      [&](At<1> at, Param<T> x, Param<T> y, Out<T, 1> out) { out[at] = Val<T>(body(Val<T>(x), Val<T>(y))); });
  compile::simplify(f);
  ir::verify(f);
  const ir::Instruction result = stored(f);
  return {f, result};
}
template <class T, class Body>
bool is_x(Body body) {
  const auto [f, i] = simplified<T>(body);
  return i.op == Op::param && i.imm == 0;
}
template <class T, class Body>
bool stays(Body body, Op op) {
  return simplified<T>(body).second.op == op;
}
template <class T, class Body>
bool is_constant(Body body, T value) {
  const auto i = simplified<T>(body).second;
  return i.op == Op::constant && i.imm == detail::bits_of<T>(value);
}
}  // namespace

TEST(Simplify, FloatIdentitiesThatChangeNoBit) {
  using V = Val<f32>;
  EXPECT_TRUE(is_x<f32>([](V x, V) { return x * 1.0f; }));
  EXPECT_TRUE(is_x<f32>([](V x, V) { return 1.0f * x; }));
  EXPECT_TRUE(is_x<f32>([](V x, V) { return x + -0.0f; }));
  EXPECT_TRUE(is_x<f32>([](V x, V) { return x - 0.0f; }));
  EXPECT_TRUE(is_x<f32>([](V x, V) { return x / 1.0f; }));
  EXPECT_TRUE(is_x<f32>([](V x, V) { return -(-x); }));
  EXPECT_TRUE(stays<f32>([](V x, V) { return x * -1.0f; }, Op::fneg));
  const auto [f, half] = simplified<f32>([](V x, V) { return x / 8.0f; });
  EXPECT_EQ(half.op, Op::fmul);
  EXPECT_EQ(f[half.args[1]].imm, std::bit_cast<uint32_t>(0.125f));
}

TEST(Simplify, FloatIdentitiesThatWouldChangeBitsAreLeft) {
  using V = Val<f32>;
  EXPECT_TRUE(stays<f32>([](V x, V) { return x * 0.0f; }, Op::fmul));
  EXPECT_TRUE(stays<f32>([](V x, V) { return x - x; }, Op::fsub));
  EXPECT_TRUE(stays<f32>([](V x, V) { return x + 0.0f; }, Op::fadd));  // -0 + 0 = 0
  EXPECT_TRUE(stays<f32>([](V x, V) { return x / 3.0f; }, Op::fdiv));
  EXPECT_TRUE(stays<f32>([](V x, V) { return x / 0x1p-149f; }, Op::fdiv));  // the reciprocal overflows
  EXPECT_TRUE(stays<f32>([](V x, V) { return x / x; }, Op::fdiv));
  EXPECT_TRUE(stays<f32>([](V x, V) { return select(x == x, V(1.0f), V(2.0f)); }, Op::select));
}

TEST(Simplify, FoldsAsTheInterpreterComputes) {
  using V = Val<i32>;
  const i32 least = std::numeric_limits<i32>::min();
  EXPECT_TRUE(is_constant<i32>([](V, V) { return V(7) / V(0); }, 0));
  EXPECT_TRUE(is_constant<i32>([&](V, V) { return V(least) / V(-1); }, least));
  EXPECT_TRUE(is_constant<i32>([](V, V) { return V(1) << V(33); }, 2));
  EXPECT_TRUE(
      is_constant<i32>([](V, V) { return cast<i32>(Val<f32>(3e10f)); }, std::numeric_limits<i32>::max()));
  EXPECT_TRUE(
      is_constant<f32>([](Val<f32>, Val<f32>) { return Val<f32>(0.1f) + Val<f32>(0.2f); }, 0.1f + 0.2f));
  EXPECT_TRUE(is_constant<f32>([](Val<f32>, Val<f32>) { return rint(Val<f32>(2.5f)); }, 2.0f));
  EXPECT_TRUE(stays<f32>([](Val<f32>, Val<f32>) { return sin(Val<f32>(2.5f)); }, Op::sin));
}

TEST(Simplify, IntegerIdentities) {
  using V = Val<i32>;
  using U = Val<u32>;
  EXPECT_TRUE(is_x<i32>([](V x, V) { return 0 + x; }));
  EXPECT_TRUE(is_x<i32>([](V x, V) { return x * 1; }));
  EXPECT_TRUE(is_x<i32>([](V x, V) { return (x + 5) - 5; }));
  EXPECT_TRUE(is_x<i32>([](V x, V) { return -(-x); }));
  EXPECT_TRUE(is_x<i32>([](V x, V) { return x << V(32); }));
  EXPECT_TRUE(is_x<i32>([](V x, V) { return x & -1; }));
  EXPECT_TRUE(is_x<i32>([](V x, V) { return ~(~x); }));
  EXPECT_TRUE(is_x<i32>([](V x, V) { return cast<i32>(cast<i64>(x)); }));
  EXPECT_TRUE(is_constant<i32>([](V x, V) { return x - x; }, 0));
  EXPECT_TRUE(is_constant<i32>([](V x, V) { return x * 0; }, 0));
  EXPECT_TRUE(is_constant<i32>([](V x, V) { return x ^ x; }, 0));
  EXPECT_TRUE(stays<u32>([](U x, U) { return x / 16u; }, Op::shr));
  EXPECT_TRUE(stays<u32>([](U x, U) { return x % 16u; }, Op::band));
  EXPECT_TRUE(stays<i32>([](V x, V) { return x / 16; }, Op::idiv));  // rounds toward zero, a shift does not
  EXPECT_TRUE(stays<i32>([](V x, V) { return x % 16; }, Op::irem));  // has the sign of x, a mask has none
  const auto [f, sum] = simplified<i32>([](V x, V) { return (x + 3) + 4; });
  EXPECT_EQ(sum.op, Op::iadd);
  EXPECT_EQ(f[sum.args[1]].imm, 7u);
}

// A sum is marked as one that does not wrap only where it follows from the marks of what it replaces.
TEST(Simplify, SumsThatMustNotWrap) {
  const auto claims = []<class T>(std::vector<std::pair<Op, T>> steps, uint8_t first = ir::kNoWrap) {
    ir::Function f = traced([&](At<1> at, Param<T> x, Out<T, 1> out) {
      ir::Id v = Val<T>(x).id();
      for (const auto& [op, number] : steps)
        v = detail::builder().op(op, {v, Val<T>(number).id()}, &op == &steps[0].first ? first : ir::kNoWrap);
      out[at] = Val<T>::from(v);
    });
    compile::simplify(f);
    ir::verify(f);
    return stored(f).op == Op::iadd && (stored(f).flags & ir::kNoWrap) != 0;
  };
  using Steps = std::vector<std::pair<Op, i32>>;
  const i32 most = std::numeric_limits<i32>::max(), least = std::numeric_limits<i32>::min();
  EXPECT_TRUE(claims(Steps{{Op::iadd, 3}, {Op::iadd, 4}}));
  EXPECT_TRUE(claims(Steps{{Op::isub, 5}}));
  EXPECT_FALSE(claims(Steps{{Op::iadd, 3}, {Op::iadd, 4}}, 0));
  EXPECT_FALSE(claims(Steps{{Op::isub, least}}));  // the negative of the least value is itself
  EXPECT_FALSE(claims(Steps{{Op::iadd, most}, {Op::iadd, most}}));  // their sum is -2, and x - 2 may wrap
  EXPECT_FALSE(claims(std::vector<std::pair<Op, u32>>{{Op::isub, 5u}}));
  const i64 wide = std::numeric_limits<i64>::max();
  EXPECT_FALSE(claims(std::vector<std::pair<Op, i64>>{{Op::iadd, wide}, {Op::iadd, wide}}));
}

TEST(Simplify, AnAxisWithoutElementsHasPositionZero) {
  EXPECT_TRUE(is_constant<i32>(
      [](Val<i32>, Val<i32>) {
        ir::Builder& b = detail::builder();
        return Val<i32>::from(b.emit(Op::clamp_index, Type::i32, {b.i32(5), b.i32(0)}));
      },
      0));
}

TEST(Simplify, ConversionsThereAndBackThroughATypeThatHoldsAllValues) {
  EXPECT_TRUE(is_x<i32>([](Val<i32> x, Val<i32>) { return cast<i32>(cast<u32>(x)); }));
  EXPECT_TRUE(is_x<u32>([](Val<u32> x, Val<u32>) { return cast<u32>(cast<i64>(x)); }));
  EXPECT_TRUE(is_x<i32>([](Val<i32> x, Val<i32>) { return cast<i32>(cast<f64>(x)); }));
  EXPECT_TRUE(is_x<f32>([](Val<f32> x, Val<f32>) { return cast<f32>(cast<f64>(x)); }));
  // The upper half is lost, a float rounds.
  EXPECT_TRUE(stays<i64>([](Val<i64> x, Val<i64>) { return cast<i64>(cast<i32>(x)); }, Op::convert));
  EXPECT_TRUE(stays<u64>([](Val<u64> x, Val<u64>) { return cast<u64>(cast<u32>(x)); }, Op::convert));
  EXPECT_TRUE(stays<i64>([](Val<i64> x, Val<i64>) { return cast<i64>(cast<f64>(x)); }, Op::convert));
  EXPECT_TRUE(stays<i32>([](Val<i32> x, Val<i32>) { return cast<i32>(cast<f32>(x)); }, Op::convert));
  EXPECT_TRUE(stays<f64>([](Val<f64> x, Val<f64>) { return cast<f64>(cast<f32>(x)); }, Op::convert));
}

TEST(Simplify, ComparisonsAndSelections) {
  using V = Val<i32>;
  EXPECT_TRUE(is_x<i32>([](V x, V y) { return select(y == y, x, y); }));
  EXPECT_TRUE(is_x<i32>([](V x, V y) { return select(y < 3, x, x); }));
  const auto [f, swapped] = simplified<i32>([](V x, V y) { return select(!(y < x), x, y); });
  EXPECT_EQ(f[swapped.args[0]].op, Op::ile);
  // The opposite of each comparison holds for the operands the other way round; of equal ones just one of both does.
  const auto [e, opposite] = simplified<i32>([](V x, V y) { return select(!(x <= y), x, y); });
  EXPECT_EQ(e[opposite.args[0]].op, Op::ilt);
  EXPECT_EQ(e[e[opposite.args[0]].args[0]].imm, 1u);
  const auto [d, other] = simplified<i32>([](V x, V y) { return select(!(x == y), x, y); });
  EXPECT_EQ(d[other.args[0]].op, Op::ine);
  const auto [g, kept] = simplified<f32>([](Val<f32> x, Val<f32> y) { return select(!(y < x), x, y); });
  EXPECT_EQ(g[kept.args[0]].op, Op::flt);  // not x <= y, because of NaN; the branches are swapped instead
  EXPECT_EQ(g[kept.args[1]].imm, 1u);
}

TEST(Simplify, BranchesOnConstantsDisappear) {
  ir::Function f = traced([](At<1> at, Out<i32, 1> out) {
    if_(Val<i32>(1) < Val<i32>(2), [&] { out[at] = 1; }, [&] { out[at] = 2; });
    if_(Val<i32>(1) > Val<i32>(2), [&] { out[at] = 3; });
  });
  compile::simplify(f);
  ir::verify(f);
  EXPECT_EQ(count(f, Op::if_), 0);
  EXPECT_EQ(count(f, Op::store), 1);
  EXPECT_EQ(stored(f).imm, 1u);
}

TEST(Simplify, KeepsStatementsOfUniformity) {
  ir::Function f = traced(
      [](Group<1> g, Out<i32, 1> out) {
        const Val<i32> same = uniform(g.lane() * 1);
        if_(same == 0, [] { barrier(); });
        out(0) = same;
      },
      {{32, 1, 1}});
  compile::simplify(f);
  ir::verify(f);  // would refuse the barrier if the statement were gone
  EXPECT_EQ(count(f, Op::imul), 0);
  EXPECT_EQ(count(f, Op::uniform), 1);
}
