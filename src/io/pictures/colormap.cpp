#include "io/pictures/colormap.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

namespace lockstep::io {
namespace {

struct Stop {
  double lightness, chroma, hue_deg;
};

// Lightness runs evenly from end to end; only chroma and hue bend, so equal steps look equal.
constexpr Stop kSky[] = {
    {0.16, 0.06, 285}, {0.36, 0.15, 300}, {0.56, 0.19, 365}, {0.76, 0.16, 415}, {0.96, 0.07, 465}};
constexpr Stop kLight[] = {{0.26, 0.04, 265}, {0.61, 0.03, 290}, {0.96, 0.03, 445}};
constexpr Stop kTerrain[] = {
    {0.34, 0.08, 165}, {0.50, 0.10, 140}, {0.66, 0.09, 105}, {0.81, 0.07, 80}, {0.97, 0.01, 80}};
constexpr Stop kCanopy[] = {{0.95, 0.03, 125}, {0.64, 0.15, 140}, {0.33, 0.09, 150}};
constexpr Stop kHeat[] = {
    {0.96, 0.04, 90}, {0.78, 0.13, 65}, {0.58, 0.19, 35}, {0.38, 0.15, 20}, {0.20, 0.06, 10}};
// Lightness rises and falls evenly about the middle, where the hue may jump because there is no chroma.
constexpr Stop kBelowZero[] = {{0.34, 0.12, 258}, {0.655, 0.12, 248}, {0.97, 0.0, 240}};
constexpr Stop kAboveZero[] = {{0.97, 0.0, 60}, {0.655, 0.15, 38}, {0.34, 0.13, 22}};

Stop interpolate(std::span<const Stop> stops, double t) {
  const double at = t * static_cast<double>(stops.size() - 1);
  const size_t k = std::min(static_cast<size_t>(at), stops.size() - 2);
  const double f = at - static_cast<double>(k);
  const auto mix = [f](double a, double b) { return a + (b - a) * f; };
  return {mix(stops[k].lightness, stops[k + 1].lightness), mix(stops[k].chroma, stops[k + 1].chroma),
          mix(stops[k].hue_deg, stops[k + 1].hue_deg)};
}

}  // namespace

uint8_t srgb_of(double light) {
  const double c = std::clamp(light, 0.0, 1.0);
  const double s = c <= 0.0031308 ? 12.92 * c : 1.055 * std::pow(c, 1 / 2.4) - 0.055;
  return static_cast<uint8_t>(std::lround(s * 255));
}

double light_of(uint8_t srgb) {
  const double s = srgb / 255.0;
  return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
}

Rgb from_oklch(double lightness, double chroma, double hue_deg) {
  const double hue = hue_deg * std::numbers::pi / 180;
  const double a = chroma * std::cos(hue), b = chroma * std::sin(hue);
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  return {srgb_of(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          srgb_of(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          srgb_of(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

double oklab_lightness(const Rgb& rgb) {
  const double r = light_of(rgb[0]), g = light_of(rgb[1]), b = light_of(rgb[2]);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
}

Rgb color(ColorMap map, double t) {
  t = t > 0 ? std::min(t, 1.0) : 0.0;
  if (map == ColorMap::cycle) return from_oklch(0.72, 0.12, 360 * t + 250);
  if (map == ColorMap::balance) {
    const Stop stop = t < 0.5 ? interpolate(kBelowZero, 2 * t) : interpolate(kAboveZero, 2 * t - 1);
    return from_oklch(stop.lightness, stop.chroma, stop.hue_deg);
  }
  const auto stops = [map]() -> std::span<const Stop> {
    switch (map) {
      case ColorMap::sky: return kSky;
      case ColorMap::light: return kLight;
      case ColorMap::terrain: return kTerrain;
      case ColorMap::canopy: return kCanopy;
      default: return kHeat;
    }
  }();
  const Stop stop = interpolate(stops, t);
  return from_oklch(stop.lightness, stop.chroma, stop.hue_deg);
}

}  // namespace lockstep::io
