// Numbers at the ends of their types: each row gives on every device what C++ gives, and where C++ leaves the result open,
// what docs/numerics.md promises.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "device/devices.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep::misuse {
namespace {

template <class T>
struct Row {
  std::string name;
  std::function<Val<i32>(Val<T>, Val<T>)> lane;
  std::function<int32_t(T, T)> host;
};

int32_t wrapped(int64_t v) { return int32_t(uint32_t(uint64_t(v))); }
Val<i32> bits(const Val<i32>& v) { return v; }
Val<i32> bits(const Val<u32>& v) { return bitcast<i32>(v); }
Val<i32> bits(const Val<f32>& v) { return select(v != v, Val<i32>(-1), bitcast<i32>(v)); }
Val<i32> bits(const Val<bool>& v) { return cast<i32>(v); }
int32_t bits(int32_t v) { return v; }
int32_t bits(uint32_t v) { return int32_t(v); }
int32_t bits(float v) { return v != v ? -1 : std::bit_cast<int32_t>(v); }
int32_t bits(bool v) { return v; }

// NUMBERS(name, what the kernel says of a and b, what C++ says)
#define NUMBERS(name, lane_text, host_text) \
  {#name,                                   \
   [](Val<T> a, Val<T> b) -> Val<i32> {     \
     (void)a, (void)b;                      \
     return bits(lane_text);                \
   },                                       \
   [](T a, T b) -> int32_t {                \
     (void)a, (void)b;                      \
     return bits(host_text);                \
   }}
#define ALIKE(name, text) NUMBERS(name, text, text)

std::vector<Row<i32>> signed_rows() {
  using T = i32;
  return {
      NUMBERS(AddWraps, a + b, wrapped(int64_t(a) + b)),
      NUMBERS(SubtractWraps, a - b, wrapped(int64_t(a) - b)),
      NUMBERS(MultiplyWraps, a * b, wrapped(int64_t(a) * b)),
      NUMBERS(DivideTruncates, a / b, b == 0 ? 0 : wrapped(int64_t(a) / b)),
      NUMBERS(RemainderHasTheSignOfTheFirst, a % b, b == 0 ? 0 : int32_t(int64_t(a) % b)),
      NUMBERS(NegateWraps, -a, wrapped(-int64_t(a))),
      NUMBERS(AbsWraps, abs(a), wrapped(a < 0 ? -int64_t(a) : int64_t(a))),
      ALIKE(And, a & b),
      ALIKE(Or, a | b),
      ALIKE(ExclusiveOr, a ^ b),
      ALIKE(Not, ~a),
      NUMBERS(ShiftLeftCountsModulo32, a << b, int32_t(uint32_t(a) << (b & 31))),
      NUMBERS(ShiftRightCopiesTheSign, a >> b, a >> (b & 31)),
      NUMBERS(ShiftBy31, a >> 31, a >> 31),
      ALIKE(Less, a < b),
      ALIKE(LessOrEqual, a <= b),
      ALIKE(Greater, a > b),
      ALIKE(Equal, a == b),
      ALIKE(NotEqual, a != b),
      NUMBERS(Min, min(a, b), b < a ? b : a),
      NUMBERS(Max, max(a, b), a < b ? b : a),
      NUMBERS(ComparedAsUnsigned, bitcast<u32>(a) < bitcast<u32>(b), uint32_t(a) < uint32_t(b)),
      NUMBERS(ToUnsigned, cast<u32>(a) / 3u, uint32_t(a) / 3u),
      NUMBERS(ToFloat, cast<f32>(a), float(a)),
      NUMBERS(ToFloatAndBack, cast<i32>(cast<f32>(a)),
              float(a) >= 2147483648.0f ? INT32_MAX : int32_t(float(a))),
      NUMBERS(ToBool, cast<bool>(a), bool(a)),
      NUMBERS(BoolIsOne, cast<i32>(a < b) + cast<i32>(a == b) * 2, int32_t(a < b) + int32_t(a == b) * 2),
      NUMBERS(HalfOfNegatives, a / 2 - (a >> 1), a / 2 - (a >> 1)),
      NUMBERS(NumberOnTheLeft, 7 - a, wrapped(7 - int64_t(a))),
      NUMBERS(NumberDivided, 100 / b, b == 0 ? 0 : 100 / b),
      NUMBERS(SelectByAComparison, select(a < b, a, b), a < b ? a : b),
      NUMBERS(Precedence, a + b * 2 - -a, wrapped(int64_t(a) + int64_t(b) * 2 + a)),
      NUMBERS(PowerWraps, powi(a, 3), wrapped(int64_t(wrapped(int64_t(a) * a)) * a)),
  };
}

std::vector<Row<u32>> unsigned_rows() {
  using T = u32;
  return {
      ALIKE(UnsignedAddWraps, a + b),
      ALIKE(UnsignedSubtractWraps, a - b),
      ALIKE(UnsignedMultiplyWraps, a * b),
      ALIKE(UnsignedNegateWraps, -a),
      NUMBERS(UnsignedDivide, a / b, b == 0 ? 0u : a / b),
      NUMBERS(UnsignedRemainder, a % b, b == 0 ? 0u : a % b),
      NUMBERS(UnsignedShiftLeft, a << b, a << (b & 31u)),
      NUMBERS(UnsignedShiftRight, a >> b, a >> (b & 31u)),
      ALIKE(UnsignedLess, a < b),
      ALIKE(UnsignedIsAtLeastOne, a >= 1u),
      ALIKE(UnsignedMinusOneWraps, a - 1u),
      NUMBERS(UnsignedMin, min(a, b), b < a ? b : a),
      NUMBERS(UnsignedToFloat, cast<f32>(a), float(a)),
      NUMBERS(UnsignedToSigned, cast<i32>(a) / 3, int32_t(a) / 3),
      NUMBERS(PopulationCount, popcount(a), std::popcount(a)),
      NUMBERS(LeadingZeros, clz(a), std::countl_zero(a)),
      NUMBERS(TrailingZeros, ctz(a), std::countr_zero(a)),
      NUMBERS(HighHalf, umulhi(a, b), uint32_t(uint64_t(a) * b >> 32)),
      ALIKE(AverageWithoutOverflow, (a & b) + ((a ^ b) >> 1u)),
      ALIKE(IsPowerOfTwo, (a & (a - 1u)) == 0u),
  };
}

std::vector<Row<f32>> float_rows() {
  using T = f32;
  return {
      ALIKE(FloatLess, a < b),
      ALIKE(FloatLessOrEqual, a <= b),
      ALIKE(FloatGreater, a > b),
      ALIKE(FloatEqual, a == b),
      ALIKE(FloatNotEqual, a != b),
      ALIKE(NotLess, !(a < b)),
      ALIKE(NotGreaterOrEqual, !(a >= b)),
      ALIKE(NotEqualToItself, a != a),
      ALIKE(LessOrGreater, (a < b) || (a > b)),
      ALIKE(FloatAdd, a + b),
      ALIKE(FloatSubtract, a - b),
      ALIKE(FloatMultiply, a * b),
      ALIKE(FloatDivide, a / b),
      ALIKE(MinusItself, a - a),
      ALIKE(TimesZero, a * 0.0f),
      ALIKE(PlusZero, a + 0.0f),
      ALIKE(NegateKeepsZerosApart, -a),
      NUMBERS(ZeroMinus, 0.0f - a, 0.0f - a),
      NUMBERS(MinKeepsTheFirstNan, min(a, b), std::min(a, b)),
      NUMBERS(MaxKeepsTheFirstNan, max(a, b), std::max(a, b)),
      NUMBERS(ClampKeepsNan, clamp(a, -1.0f, 1.0f), std::min(std::max(a, -1.0f), 1.0f)),
      NUMBERS(FloatAbs, abs(a), std::fabs(a)),
      NUMBERS(Floor, floor(a), std::floor(a)),
      NUMBERS(Ceil, ceil(a), std::ceil(a)),
      NUMBERS(Truncate, trunc(a), std::trunc(a)),
      NUMBERS(RoundAwayFromZero, round(a), std::round(a)),
      NUMBERS(RoundToEven, rint(a), std::nearbyint(a)),
      NUMBERS(CopySign, copysign(a, b), std::copysign(a, b)),
      NUMBERS(FloatRemainder, fmod(a, b), std::fmod(a, b)),
      NUMBERS(SquareRoot, sqrt(a), std::sqrt(a)),
      NUMBERS(FusedMultiplyAdd, fma(a, b, a), std::fma(a, b, a)),
      NUMBERS(ToSignedSaturates, cast<i32>(a),
              a != a               ? 0
              : a >= 2147483648.0f ? INT32_MAX
              : a < -2147483648.0f ? INT32_MIN
                                   : int32_t(a)),
      NUMBERS(ToUnsignedSaturates, cast<u32>(a),
              a != a || a <= -1.0f ? 0u
              : a >= 4294967296.0f ? UINT32_MAX
                                   : uint32_t(a)),
      NUMBERS(FloatToBool, cast<bool>(a), bool(a)),
      NUMBERS(SelectOfNan, select(a < b, a, b), a < b ? a : b),
      NUMBERS(IsNan, isnan(a), std::isnan(a)),
      NUMBERS(IsInfinite, isinf(a), std::isinf(a)),
      NUMBERS(IsFinite, isfinite(a), std::isfinite(a)),
      ALIKE(DoublePlusFloatNumber, a + 1),
      ALIKE(ReciprocalOfZero, 1.0f / a),
      ALIKE(SumOfProducts, a * b + a),
  };
}

template <class T>
void expect_rows(const std::vector<Row<T>>& rows, const std::vector<T>& values, bool (*promised)(T)) {
  std::vector<T> a, b;
  for (const T x : values)
    for (const T y : values) a.push_back(x), b.push_back(y);
  const int64_t n = int64_t(a.size()), count = int64_t(rows.size());
  const Kernel all = kernel("test.numbers",
                            [&](At<1> at, Grid<T, 1> x, Grid<T, 1> y, Out<i32, 2> out) {
                              for (size_t r = 0; r < rows.size(); ++r)
                                out(int(r), at.x) = rows[r].lane(x[at], y[at]);
                            },
                            {.contract = false});
  for (const std::string& name : test_devices()) {
    const Device& device = test_device(name);
    const bool gpu = device.info().kind == DeviceKind::webgpu;
    const Buffer out = device.allocate<i32>({count, n});
    device.launch(all, {n}, device.upload(a), device.upload(b), out);
    const std::vector<i32> got = device.download<i32>(out);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t k = 0; k < n; ++k) {
        if (gpu && promised && !(promised(a[size_t(k)]) && promised(b[size_t(k)]))) continue;
        const auto without_sign_of_zero = [&](int32_t v) {
          return gpu && promised && v == INT32_MIN ? 0 : v;
        };
        const int32_t expected = without_sign_of_zero(rows[size_t(r)].host(a[size_t(k)], b[size_t(k)])),
                      value = without_sign_of_zero(got[size_t(r * n + k)]);
        const bool close = gpu && promised && std::abs(int64_t(value) - expected) <= 4;  // ulp
        if (close) continue;
        EXPECT_EQ(value, expected) << rows[size_t(r)].name << " of " << a[size_t(k)] << " and "
                                   << b[size_t(k)] << ", " << name;
      }
  }
}

TEST(Numbers, OfI32AreThoseOfCpp) {
  expect_rows<i32>(
      signed_rows(),
      {INT32_MIN, INT32_MIN + 1, -65537,   -33,           -32,      -7, -3, -1, 0, 1, 2, 3, 7, 31, 32,
       33,        65536,         16777217, INT32_MAX - 1, INT32_MAX},
      nullptr);
}
TEST(Numbers, OfU32AreThoseOfCpp) {
  expect_rows<u32>(unsigned_rows(),
                   {0u, 1u, 2u, 3u, 7u, 31u, 32u, 33u, 65535u, 65537u, 16777217u, 0x7FFFFFFFu, 0x80000000u,
                    UINT32_MAX - 1, UINT32_MAX},
                   nullptr);
}
TEST(Numbers, OfF32AreThoseOfCpp) {
  using Limits = std::numeric_limits<float>;
  // WebGPU promises neither NaN, infinities, subnormals nor the signs of zeros, and bounds of a few ulp elsewhere.
  expect_rows<f32>(float_rows(),
                   {0.0f,
                    -0.0f,
                    0.5f,
                    -0.5f,
                    1.0f,
                    -1.0f,
                    1.5f,
                    2.5f,
                    -2.5f,
                    3.0f,
                    -7.25f,
                    0.1f,
                    1e-3f,
                    16777216.0f,
                    2147483520.0f,
                    2147483648.0f,
                    -2147483648.0f,
                    4294967040.0f,
                    4294967296.0f,
                    1e20f,
                    -1e20f,
                    Limits::max(),
                    Limits::lowest(),
                    Limits::min(),
                    Limits::denorm_min(),
                    Limits::infinity(),
                    -Limits::infinity(),
                    Limits::quiet_NaN()},
                   [](float v) { return v == 1.0f || (std::fabs(v) >= 0.1f && std::fabs(v) <= 4.0f); });
}

}  // namespace
}  // namespace lockstep::misuse
