#include "io/vectors/rings.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::io {
namespace {

/// Where a horizontal line through no corner crosses the ring, from west to east.
std::vector<double> crossings_of(const MapRing& ring, double y) {
  std::vector<double> found;
  for (size_t k = 0, last = ring.size() - 1; k < ring.size(); last = k++) {
    const MapPoint &a = ring[k], &b = ring[last];
    if ((a.y > y) != (b.y > y)) found.push_back((b.x - a.x) * (y - a.y) / (b.y - a.y) + a.x);
  }
  std::ranges::sort(found);
  return found;
}

/// A point that is inside and far from the boundary: one on it, where rings touch, is on neither side.
MapPoint point_inside(const MapRing& ring) {
  std::vector<double> heights;
  for (const MapPoint& corner : ring) heights.push_back(corner.y);
  std::ranges::sort(heights);
  MapPoint point = ring[0];
  double widest = 0;
  for (size_t k = 1; k < heights.size(); ++k)
    if (heights[k] - heights[k - 1] > widest) {
      widest = heights[k] - heights[k - 1];
      point.y = heights[k - 1] + widest / 2;
    }
  const std::vector<double> crossings = crossings_of(ring, point.y);
  widest = 0;
  for (size_t k = 1; k < crossings.size(); k += 2)
    if (crossings[k] - crossings[k - 1] > widest) {
      widest = crossings[k] - crossings[k - 1];
      point.x = crossings[k - 1] + widest / 2;
    }
  return point;
}

bool is_within(const MapPoint& p, const MapRing& ring) {
  const std::vector<double> crossings = crossings_of(ring, p.y);
  return std::ranges::count_if(crossings, [&](double x) { return x > p.x; }) % 2 == 1;
}

}  // namespace

double twice_area(const MapRing& ring) {
  double sum = 0;
  // About the first corner: coordinates of maps are large next to the area.
  for (size_t k = 1; k + 1 < ring.size(); ++k)
    sum += (ring[k].x - ring[0].x) * (ring[k + 1].y - ring[0].y) -
           (ring[k].y - ring[0].y) * (ring[k + 1].x - ring[0].x);
  return sum;
}

std::vector<std::vector<size_t>> rings_around(const std::vector<MapRing>& rings) {
  std::vector<double> areas;
  for (const MapRing& ring : rings) areas.push_back(std::abs(twice_area(ring)));
  std::vector<std::vector<size_t>> around(rings.size());
  for (size_t k = 0; k < rings.size(); ++k) {
    const MapPoint inside = point_inside(rings[k]);
    for (size_t other = 0; other < rings.size(); ++other)
      if (areas[other] > areas[k] && is_within(inside, rings[other])) around[k].push_back(other);
  }
  return around;
}

}  // namespace lockstep::io
