#include "core/numbers/half.hpp"

#include <bit>
#include <cmath>

namespace lockstep {

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    const float magnitude = float(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t f32_to_f16(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v), magnitude = bits & 0x7fffffffu;
  const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00);   // NaN
  if (magnitude >= 0x477ff000u) return uint16_t(sign | 0x7c00);  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {                                 // below the least normal: steps of 2^-24
    const float steps = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f);
    return uint16_t(sign | uint32_t(steps));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return uint16_t(sign | ((rounded >> 13) - (112 << 10)));
}

uint16_t f32_to_bf16(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace lockstep
