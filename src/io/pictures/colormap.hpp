// Colour maps of even perceived steps, built in the Oklab space.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace lockstep::io {

enum class ColorMap {
  sky,      ///< dark violet over orange to pale yellow: shares of sky, 0 to 1
  light,    ///< slate to warm white: shadow and sun
  terrain,  ///< deep green over sand to white: heights
  canopy,   ///< pale to dark green: heights of plants
  heat,     ///< pale over red to black: amounts
  cycle,    ///< one turn of hue at even lightness: directions
  balance,  ///< blue over near white to red, as dark at both ends: signed amounts about 0
};

using Rgb = std::array<uint8_t, 3>;

/// Colour at `t` in 0 … 1 (clamped; NaN as 0).
Rgb color(ColorMap map, double t);

/// The values at both ends of a colour map.
struct ColorRange {
  double low = 0, high = 1;
  double share(double v) const { return (v - low) / (high - low); }
};
/// The range of the finite values, unless its ends are given; never empty. For `balance` evenly about zero.
template <class Values>
ColorRange color_range(const Values& values, ColorMap map, std::optional<double> minimum,
                       std::optional<double> maximum) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto v : values) {
    if (!std::isfinite(v)) continue;
    low = std::min<double>(low, v);
    high = std::max<double>(high, v);
  }
  if (low > high) low = high = 0;
  ColorRange range{minimum.value_or(low), maximum.value_or(high)};
  if (map == ColorMap::balance) {
    range.high = std::max(std::abs(range.low), std::abs(range.high));
    range.low = -range.high;
  }
  if (!(range.high > range.low)) range.high = range.low + 1;
  return range;
}

/// Lightness 0 … 1, chroma, hue in degrees to 8-bit sRGB, clipped to what sRGB holds (B. Ottosson 2020,
/// Oklab).
Rgb from_oklch(double lightness, double chroma, double hue_deg);
/// Oklab lightness of an sRGB colour.
double oklab_lightness(const Rgb& rgb);

/// One channel of sRGB and its share of light, 0 … 1 (clamped), so that light adds up as light does.
double light_of(uint8_t srgb);
uint8_t srgb_of(double light);

}  // namespace lockstep::io
