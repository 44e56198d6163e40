#include <gtest/gtest.h>

#include "compile/passes/expressions/contract_fma.hpp"
#include "helpers.hpp"

using namespace lockstep;
using ir::Op;

namespace {
template <class Body>
ir::Function contracted(Body body) {
  ir::Function f = traced(body);
  compile::contract_fma(f);
  ir::verify(f);
  return f;
}
using F = Val<f32>;
}  // namespace

TEST(ContractFma, ProductPlusValue) {
  const auto f = contracted([](At<1> at, Param<f32> a, Param<f32> b, Param<f32> c, Out<f32, 1> out) {
    out[at] = F(a) * F(b) + F(c);
  });
  EXPECT_EQ(count(f, Op::fma), 1);
  EXPECT_EQ(count(f, Op::fmul), 0);
  EXPECT_EQ(count(f, Op::fneg), 0);
  const auto& fma = stored(f);
  EXPECT_EQ(f[fma.args[0]].imm, 0u);  // parameters a, b, c
  EXPECT_EQ(f[fma.args[1]].imm, 1u);
  EXPECT_EQ(f[fma.args[2]].imm, 2u);
}

TEST(ContractFma, DifferencesNegateOneFactorOrTheOther) {
  const auto minus = contracted([](At<1> at, Param<f32> a, Param<f32> b, Param<f32> c, Out<f32, 1> out) {
    out[at] = F(a) * F(b) - F(c);
  });
  EXPECT_EQ(minus[stored(minus).args[2]].op, Op::fneg);
  const auto from = contracted([](At<1> at, Param<f32> a, Param<f32> b, Param<f32> c, Out<f32, 1> out) {
    out[at] = F(c) - F(a) * F(b);
  });
  EXPECT_EQ(from[stored(from).args[0]].op, Op::fneg);
  EXPECT_EQ(from[stored(from).args[2]].imm, 2u);
}

TEST(ContractFma, OfTwoProductsTheFirst) {
  const auto f =
      contracted([](At<1> at, Param<f32> a, Param<f32> b, Param<f32> c, Param<f32> d, Out<f32, 1> out) {
        const F left = F(a) * F(b), right = F(c) * F(d);
        out[at] = left + right;
      });
  EXPECT_EQ(count(f, Op::fma), 1);
  EXPECT_EQ(count(f, Op::fmul), 1);
  EXPECT_EQ(f[stored(f).args[0]].imm, 0u);
  EXPECT_EQ(f[stored(f).args[2]].op, Op::fmul);
}

TEST(ContractFma, LeavesSharedProductsOtherBlocksAndRoundedOnes) {
  EXPECT_EQ(count(contracted([](At<1> at, Param<f32> a, Param<f32> b, Out<f32, 1> out) {
                    const F p = F(a) * F(b);
                    out[at] = p + p * 2.0f;
                  }),
                  Op::fma),
            1);  // p * 2 contracts, p itself is used twice
  EXPECT_EQ(count(contracted([](At<1> at, Param<f32> a, Param<f32> b, Out<f32, 1> out) {
                    const F p = F(a) * F(b);
                    if_(F(a) > 0.0f, [&] { out[at] = p + 1.0f; });
                  }),
                  Op::fma),
            0);
  const auto rounded_one = contracted([](At<1> at, Param<f32> a, Out<f32, 1> out) {
    out[at] = rounded(F(a) * F(a)) + 1.0f;  // a sum takes what is rounded
  });
  EXPECT_EQ(count(rounded_one, Op::fma), 0);
  EXPECT_EQ(count(rounded_one, Op::rounded), 0);
  EXPECT_EQ(count(contracted([](At<1> at, Param<f32> a, Out<f32, 1> out) {
                    out[at] = rounded(F(a) * F(a) + 2.0f) * F(a) + 1.0f;  // inside and behind: contracted
                  }),
                  Op::fma),
            2);
}

TEST(ContractFma, IsTurnedOffForAKernelAndItsFunctions) {
  const auto body = [](At<1> at, Param<f32> a, Out<f32, 1> out) {
    const auto twice = function("twice", [](F x) { return x * x + 1.0f; });
    out[at] = F(a) * F(a) + twice(F(a));
  };
  for (const bool contract : {true, false}) {
    ir::Function f = traced(body, {.contract = contract});
    compile::contract_fma(f);
    compile::contract_fma(f.functions[0]);
    EXPECT_EQ(count(f, Op::fma), int(contract));
    EXPECT_EQ(count(f.functions[0], Op::fma), int(contract));
  }
}
