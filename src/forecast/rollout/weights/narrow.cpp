#include "forecast/rollout/weights/narrow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numbers/half.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/rollout.hpp"

namespace lockstep::forecast {

namespace {

constexpr float kGreatestE4m3 = 448;
constexpr int kLeastScaleExponent = -100;
/// The smallest normal e4m3 and the distance of those below it.
constexpr int kLeastExponent = -6, kMantissa = 3;

}  // namespace

uint8_t f32_to_e4m3(float v) {
  const uint8_t sign = std::signbit(v) ? 0x80 : 0;
  const float magnitude = std::min(std::abs(v), kGreatestE4m3);
  int exponent = kLeastExponent;
  if (magnitude > 0) exponent = std::max(std::ilogb(magnitude), kLeastExponent);
  // In units of the last place: exact, and rounded to even.
  const auto units = int(std::nearbyint(std::ldexp(magnitude, kMantissa - exponent)));
  // A mantissa that overflows carries into the exponent by itself.
  return uint8_t(sign | (units + ((exponent - kLeastExponent) << kMantissa)));
}

float e4m3_to_f32(uint8_t bits) {
  const int exponent = bits >> kMantissa & 15, mantissa = bits & 7;
  const float magnitude = exponent == 0
                              ? std::ldexp(float(mantissa), kLeastExponent - kMantissa)
                              : std::ldexp(float(8 + mantissa), exponent - 1 + kLeastExponent - kMantissa);
  return bits & 0x80 ? -magnitude : magnitude;
}

float row_scale(std::span<const float> row) {
  float greatest = 0;
  for (const float v : row) greatest = std::max(greatest, std::abs(v));
  if (greatest == 0) return 1;
  int exponent = 0;  // of the least power of two that is no less than greatest / 448
  const double part = std::frexp(double(greatest) / kGreatestE4m3, &exponent);
  return std::ldexp(1.0f, std::max(part == 0.5 ? exponent - 1 : exponent, kLeastScaleExponent));
}

std::span<const Choice<WeightType>> choices(WeightType) {
  using enum WeightType;
  static constexpr auto kAll =
      std::to_array<Choice<WeightType>>({{"f32", f32}, {"bf16", bf16}, {"fp8", fp8}});
  return kAll;
}
std::string_view name(WeightType type) { return name_among(choices(type), type); }

Array round_weights(const Array& matrices, WeightType type, std::string_view where) {
  if (matrices.storage() != Storage::f32 || matrices.rank() != 3)
    throw InputError(fmt::format("weights {} of rank {}", name(matrices.storage()), matrices.rank()), where,
                     "f32 (M, D, K)");
  Array rounded = matrices.copy();
  const std::span<float> all = rounded.mutate<float>();
  const auto width = size_t(matrices.size(2));
  for (size_t first = 0; first < all.size(); first += width) {
    const std::span<float> row = all.subspan(first, width);
    const float scale = row_scale(row);
    for (float& v : row) {
      const float before = v;
      if (type == WeightType::bf16) v = bf16_to_f32(f32_to_bf16(v));
      if (type == WeightType::fp8) v = e4m3_to_f32(f32_to_e4m3(v / scale)) * scale;
      if (!std::isfinite(v))
        throw InputError(fmt::format("a weight of {}", before), where,
                         fmt::format("numbers that {} rounds to f32", name(type)));
    }
  }
  return rounded;
}

}  // namespace lockstep::forecast
