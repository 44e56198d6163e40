#include "urban/sun/grid_north.hpp"

#include <cmath>
#include <numbers>

namespace lockstep::urban {
namespace {

constexpr double kDegreeInRadians = std::numbers::pi / 180;

/// Metres north and east between two places that lie near each other.
struct Offset {
  double north, east;
  double length() const { return std::hypot(north, east); }
};
Offset between(const Place& from, const Place& to) {
  constexpr double a = 6378137.0, f = 1 / 298.257223563, e2 = f * (2 - f);
  const double phi = (from.latitude_deg + to.latitude_deg) / 2 * kDegreeInRadians;
  const double w = 1 - e2 * std::sin(phi) * std::sin(phi);
  const double across = a / std::sqrt(w), along = a * (1 - e2) / (w * std::sqrt(w));  // radii of curvature
  const double turn = std::remainder(to.longitude_deg - from.longitude_deg, 360.0);
  return {along * (to.latitude_deg - from.latitude_deg) * kDegreeInRadians,
          across * std::cos(phi) * turn * kDegreeInRadians};
}

}  // namespace

double GridNorth::scale() const { return std::sqrt(scale_east * scale_north); }

GridNorth grid_north(const std::function<Place(double x, double y)>& place_of, double x, double y) {
  constexpr double step = 100;
  const Offset north = between(place_of(x, y - step), place_of(x, y + step));
  const Offset east = between(place_of(x - step, y), place_of(x + step, y));
  return {std::atan2(north.east, north.north) / kDegreeInRadians, 2 * step / east.length(),
          2 * step / north.length()};
}

}  // namespace lockstep::urban
