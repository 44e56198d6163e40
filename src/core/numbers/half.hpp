// 16-bit floats: rounded to nearest even; subnormals, infinities and NaN are kept.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep {

float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float v);
inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
uint16_t f32_to_bf16(float v);

}  // namespace lockstep
