#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "lockstep/verify.hpp"

namespace lockstep {
namespace {

constexpr f32 kInf = std::numeric_limits<f32>::infinity(), kNan = std::numeric_limits<f32>::quiet_NaN();
Comparison compare_f32(std::vector<f32> a, std::vector<f32> b) {
  return compare({Array::of(a)}, {Array::of(b)});
}

TEST(Compare, EqualArrays) {
  const Comparison c = compare_f32({1, kInf, kNan, -0.0f}, {1, kInf, -kNan, -0.0f});
  EXPECT_EQ(c.differing_bits, 0);
  EXPECT_EQ(c.elements, 4);
  EXPECT_EQ(c.finite_equal, 100);
  EXPECT_TRUE(c.within(Bound::exact()));
}

TEST(Compare, CountsBitsUlpsAndNorms) {
  const Comparison c = compare_f32({1, 2, std::nextafter(3.0f, 4.0f)}, {1, 2, 3});
  EXPECT_EQ(c.differing_elements, 1);
  EXPECT_EQ(c.differing_bits, std::popcount(std::bit_cast<uint32_t>(std::nextafter(3.0f, 4.0f)) ^
                                            std::bit_cast<uint32_t>(3.0f)));
  EXPECT_EQ(c.max_ulp, 1);
  EXPECT_NEAR(c.rel_l2, 2.384185791015625e-07 / std::sqrt(14.0), 1e-15);
  EXPECT_TRUE(c.within(Bound::ulp(1)));
  EXPECT_FALSE(c.within(Bound::exact()));
  EXPECT_FALSE(c.within(Bound::ulp(0.5)));
}

TEST(Compare, ZerosOfBothSignsDifferInBitsOnly) {
  const Comparison c = compare_f32({0.0f}, {-0.0f});
  EXPECT_EQ(c.differing_bits, 1);
  EXPECT_EQ(c.max_abs, 0);
  EXPECT_EQ(c.max_ulp, 0);
}

TEST(Compare, AMissingNumberFailsEveryTolerance) {
  for (const auto& got : {kNan, kInf}) {
    const Comparison c = compare_f32({got, 1}, {5, 1});
    EXPECT_EQ(c.finite_equal, 50);
    EXPECT_FALSE(c.within(Bound::relative(1e9)));
    EXPECT_FALSE(c.within(Bound::ulp(1e9)));
    EXPECT_FALSE(c.within(Bound::absolute(1e9)));
  }
}

TEST(Compare, SharesOfIntegersMayFlip) {
  std::vector<u32> a(1000, 3), b = a;
  b[7] = 4;
  const Comparison c = compare({Array::of(a)}, {Array::of(b)});
  EXPECT_TRUE(c.within(Bound::flips(0.001)));
  EXPECT_FALSE(c.within(Bound::flips(0.0009)));
}

TEST(Compare, HalfPrecision) {
  const std::vector<f16> a{{0x3c00}, {0x0001}}, b{{0x3c01}, {0x0001}};
  const Comparison c = compare({Array::of(a)}, {Array::of(b)});
  EXPECT_EQ(c.max_ulp, 1);
  EXPECT_DOUBLE_EQ(c.max_abs, 0x1p-10);
}

TEST(Compare, RefusesOtherShapes) {
  EXPECT_THROW(compare_f32({1}, {1, 2}), InputError);
  EXPECT_THROW(compare({}, {Array::of(std::vector<f32>{1})}), InputError);
}

TEST(Sizes, AreWholeNumbers) {
  EXPECT_EQ(parse_size("3x64x1"), (std::vector<int64_t>{3, 64, 1}));
  for (const char* text : {"", "x", "3x", "3 x 4", "-1", "1e3", "99999999999999999999"})
    EXPECT_THROW(parse_size(text), InputError) << text;
  EXPECT_THROW(parse_shape("3x4", 3), InputError);
}

}  // namespace
}  // namespace lockstep
