// Colour maps of even perceived steps, built in the Oklab space.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep::io {

enum class ColorMap {
  sky,      ///< dark violet over orange to pale yellow: shares of sky, 0 to 1
  light,    ///< slate to warm white: shadow and sun
  terrain,  ///< deep green over sand to white: heights
  canopy,   ///< pale to dark green: heights of plants
  heat,     ///< pale over red to black: amounts
  cycle,    ///< one turn of hue at even lightness: directions
};

using Rgb = std::array<uint8_t, 3>;

/// Colour at `t` in 0 … 1 (clamped; NaN as 0).
Rgb color(ColorMap map, double t);

/// Lightness 0 … 1, chroma, hue in degrees to 8-bit sRGB, clipped to what sRGB holds (B. Ottosson 2020,
/// Oklab).
Rgb from_oklch(double lightness, double chroma, double hue_deg);
/// Oklab lightness of an sRGB colour.
double oklab_lightness(const Rgb& rgb);

}  // namespace lockstep::io
