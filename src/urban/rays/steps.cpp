#include "urban/rays/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

int64_t sign(double value) { return (value > 0) - (value < 0); }

/// Halves to even.
int64_t rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

}  // namespace

RaySlope ray_slope(const Direction& direction) {
  if (!(direction.altitude_deg > 0 && direction.altitude_deg <= 90))
    throw InputError(fmt::format("altitude {}", direction.altitude_deg), "direction",
                     "above 0 and at most 90 degrees");
  if (!std::isfinite(direction.azimuth_deg))
    throw InputError(fmt::format("azimuth {}", direction.azimuth_deg), "direction", "a finite angle");
  constexpr double pi = std::numbers::pi;
  double azimuth_deg = std::fmod(direction.azimuth_deg, 360.0);
  if (azimuth_deg < 0) azimuth_deg += 360.0;
  const double azimuth = azimuth_deg * (pi / 180);
  const double s = std::sin(azimuth), c = std::cos(azimuth), t = std::tan(azimuth);
  RaySlope slope;
  slope.east_west =
      (azimuth >= pi / 4 && azimuth < 3 * pi / 4) || (azimuth >= 5 * pi / 4 && azimuth < 7 * pi / 4);
  const double stride = slope.east_west ? 1 / std::abs(s) : 1 / std::abs(c);
  slope.cols = static_cast<double>(sign(s)) * (slope.east_west ? 1 : std::abs(t));
  slope.rows = static_cast<double>(-sign(c)) * (slope.east_west ? std::abs(1 / t) : 1);
  slope.tangent = std::abs(t);
  slope.stride = stride;
  slope.rise = std::tan(direction.altitude_deg * (pi / 180));
  return slope;
}

std::vector<RayStep> ray_steps(const Direction& direction, const RayBounds& bounds) {
  const RaySlope slope = ray_slope(direction);
  const int64_t row_sign = sign(slope.rows), col_sign = sign(slope.cols);
  std::vector<RayStep> steps;
  RayStep last{0, 0, 0.0};
  double reach_m = 0;
  for (int64_t i = 0; last.rise_m <= bounds.relief_m && std::abs(last.drow) < bounds.rows &&
                      std::abs(last.dcol) < bounds.cols && reach_m <= bounds.max_reach_m;
       ++i) {
    const double n = static_cast<double>(i);
    last.dcol = col_sign * (slope.east_west ? i : rounded(n * slope.tangent));
    last.drow = row_sign * (slope.east_west ? rounded(n / slope.tangent) : i);
    reach_m = slope.stride * n * bounds.pixel_size_m;
    last.rise_m = slope.stride * n * slope.rise * bounds.pixel_size_m;
    steps.push_back(last);
  }
  return steps;
}

void Reach::include(const RayStep& step) {
  north = std::max(north, -step.drow);
  south = std::max(south, step.drow);
  west = std::max(west, -step.dcol);
  east = std::max(east, step.dcol);
}

void Reach::include(const Reach& other) {
  north = std::max(north, other.north);
  south = std::max(south, other.south);
  west = std::max(west, other.west);
  east = std::max(east, other.east);
}

Reach reach_of(const std::vector<RayStep>& steps) {
  Reach reach;
  for (const RayStep& step : steps) reach.include(step);
  return reach;
}

}  // namespace lockstep::urban
