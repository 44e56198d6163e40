#include "ir/meaning.hpp"

#include <gtest/gtest.h>

#include <random>

using namespace lockstep;
using namespace lockstep::ir::meaning;

namespace {
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int32_t kMin = std::numeric_limits<int32_t>::min(), kMax = std::numeric_limits<int32_t>::max();

/// The f16 nearest to v, halves to the even one, by comparison with both neighbours in double.
uint16_t nearest_f16(float v) {
  const double x = std::fabs(double(v));
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  int best = 0;
  double distance = std::numeric_limits<double>::infinity();
  int low = 0, high = 0x7c00;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    const double value = middle == 0x7c00 ? 65536.0 : double(f16_to_f32(uint16_t(middle)));
    (value <= x ? low : high) = middle;
  }
  for (int k : {low, high}) {
    const double value = k == 0x7c00 ? 65536.0 : double(f16_to_f32(uint16_t(k)));
    const double d = std::fabs(value - x);
    if (d < distance || (d == distance && k % 2 == 0)) best = k, distance = d;
  }
  return uint16_t(sign | best);
}
}  // namespace

TEST(Meaning, IntegersWrapAndDivideSafely) {
  EXPECT_EQ(wrap_add(kMax, 1), kMin);
  EXPECT_EQ(wrap_sub(kMin, 1), kMax);
  EXPECT_EQ(wrap_mul(65536, 65536), 0);
  EXPECT_EQ(wrap_abs(kMin), kMin);
  EXPECT_EQ(safe_div(7, 0), 0);
  EXPECT_EQ(safe_div(kMin, -1), kMin);
  EXPECT_EQ(safe_div(-7, 2), -3);
  EXPECT_EQ(safe_rem(7u, 0u), 0u);
  EXPECT_EQ(safe_rem(kMin, -1), 0);
  EXPECT_EQ(safe_rem(-7, 2), -1);
  EXPECT_EQ(mul_high(0xffffffffu, 0xffffffffu), 0xfffffffeu);
  EXPECT_EQ(mul_high(~uint64_t(0), ~uint64_t(0)), ~uint64_t(0) - 1);
}

TEST(Meaning, ShiftsCountModuloTheWidth) {
  EXPECT_EQ(shift_left(1u, 33u), 2u);
  EXPECT_EQ(shift_right(-8, 1), -4);
  EXPECT_EQ(shift_right(-8, 33), -4);
  EXPECT_EQ(shift_right(0x80000000u, 31u), 1u);
  EXPECT_EQ(leading_zeros(0), 32);
  EXPECT_EQ(trailing_zeros(uint64_t(0)), 64u);
  EXPECT_EQ(pop_count(-1), 32);
}

TEST(Meaning, FloatToIntegerSaturates) {
  EXPECT_EQ((convert<int32_t>(2147483648.0f)), kMax);
  EXPECT_EQ((convert<int32_t>(2147483520.0f)), 2147483520);
  EXPECT_EQ((convert<int32_t>(-2147483648.0f)), kMin);
  EXPECT_EQ((convert<int32_t>(-3e9f)), kMin);
  EXPECT_EQ((convert<int32_t>(-2147483648.9)), kMin);
  EXPECT_EQ((convert<int32_t>(2147483647.9)), kMax);
  EXPECT_EQ((convert<int32_t>(std::numeric_limits<float>::quiet_NaN())), 0);
  EXPECT_EQ((convert<uint32_t>(-0.9f)), 0u);
  EXPECT_EQ((convert<uint32_t>(-5.0f)), 0u);
  EXPECT_EQ((convert<uint32_t>(4294967295.0)), 0xffffffffu);
  EXPECT_EQ((convert<uint64_t>(kInf)), ~uint64_t(0));
  EXPECT_EQ((convert<int64_t>(-kInf)), std::numeric_limits<int64_t>::min());
  EXPECT_EQ((convert<float>(int32_t(16777217))), 16777216.0f);
}

TEST(Meaning, MinAndMaxKeepTheFirstWhereTheyDoNotOrder) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(op_fmin(nan, 1.0f, 0.0f)));
  EXPECT_EQ(op_fmin(1.0f, nan, 0.0f), 1.0f);
  EXPECT_TRUE(std::signbit(op_fmin(-0.0f, 0.0f, 0.0f)));
  EXPECT_FALSE(std::signbit(op_fmax(0.0f, -0.0f, 0.0f)));
  EXPECT_EQ(op_frint(2.5f, 0.0f, 0.0f), 2.0f);
  EXPECT_EQ(op_frint(-3.5f, 0.0f, 0.0f), -4.0f);
}

TEST(Meaning, F16KeepsEveryValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float v = f16_to_f32(uint16_t(bits));
    if (std::isnan(v))
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(v))));
    else
      EXPECT_EQ(f32_to_f16(v), bits);
  }
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_f32(0xfc00), -kInf);
}

TEST(Meaning, F16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(65519.99f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);  // half of the least subnormal: to even
  EXPECT_EQ(f32_to_f16(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  std::mt19937 random(7);
  for (int k = 0; k < 200000; ++k) {
    const uint32_t exponent = 90 + random() % 60,
                   fraction = k % 4 ? random() & 0x7fffff : (random() & 0x7ff) << 12;
    const float v = std::bit_cast<float>(uint32_t((random() & 1) << 31 | exponent << 23 | fraction));
    ASSERT_EQ(f32_to_f16(v), nearest_f16(v)) << v;
  }
}

TEST(Meaning, Bf16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float v = bf16_to_f32(uint16_t(bits));
    if (std::isnan(v))
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(v))));
    else
      EXPECT_EQ(f32_to_bf16(v), bits);
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}
