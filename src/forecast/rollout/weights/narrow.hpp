// Narrow recurrent weights on the host.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::forecast {

/// e4m3 without infinities: 1 sign, 4 bits of the exponent, 3 of the mantissa; greatest 448. Nearest, ties to even;
/// magnitudes beyond 448 become 448.
uint8_t f32_to_e4m3(float v);
float e4m3_to_f32(uint8_t bits);
/// The power of two that brings the greatest magnitude of a row into (224, 448]; 1 for a row of zeros, no less than
/// 2^-100.
float row_scale(std::span<const float> row);

}  // namespace lockstep::forecast
