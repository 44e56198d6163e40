#include "urban/areas/polygon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

struct Edge {
  Corner a, b;
  size_t ring = 0, number = 0, count = 0;  // of its ring
  double left() const { return std::min(a.x, b.x); }
  double right() const { return std::max(a.x, b.x); }
};

double turn_at(const Corner& a, const Corner& b, const Corner& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/// Of two rings with the same corners neither is around the other.
bool is_twice(const std::vector<Ring>& rings) {
  std::set<std::vector<std::pair<double, double>>> found;
  for (const Ring& ring : rings) {
    std::vector<std::pair<double, double>> corners;
    for (const Corner& c : ring) corners.emplace_back(c.x, c.y);
    std::ranges::sort(corners);
    if (!found.insert(std::move(corners)).second) return true;
  }
  return false;
}

/// Whether they cross inside both: common corners and boundaries that touch are allowed.
bool cross(const Edge& e, const Edge& f) {
  const double a = turn_at(e.a, e.b, f.a), b = turn_at(e.a, e.b, f.b), c = turn_at(f.a, f.b, e.a),
               d = turn_at(f.a, f.b, e.b);
  return ((a > 0 && b < 0) || (a < 0 && b > 0)) && ((c > 0 && d < 0) || (c < 0 && d > 0));
}

}  // namespace

void check_shape(const AreaShape& shape) {
  constexpr auto kValid = "polygons whose boundaries do not cross";
  if (shape.rings.empty()) throw InputError("an area without a polygon", shape.where, kValid);
  std::vector<Edge> edges;
  for (size_t r = 0; r < shape.rings.size(); ++r) {
    const Ring& ring = shape.rings[r];
    if (ring.size() < 3)
      throw InputError(fmt::format("a ring of {} corners", ring.size()), shape.where, "three or more");
    for (size_t k = 0; k < ring.size(); ++k) {
      const Edge edge{ring[k], ring[(k + 1) % ring.size()], r, k, ring.size()};
      if (!std::isfinite(edge.a.x) || !std::isfinite(edge.a.y))
        throw InputError("a corner that is not a number", shape.where, "coordinates");
      edges.push_back(edge);
    }
  }
  if (is_twice(shape.rings)) throw InputError("the same ring twice", shape.where, kValid);
  std::ranges::sort(edges, [](const Edge& e, const Edge& f) { return e.left() < f.left(); });
  std::vector<const Edge*> open;  // that the sweep from the left has not left
  for (const Edge& edge : edges) {
    std::erase_if(open, [&](const Edge* e) { return e->right() < edge.left(); });
    for (const Edge* e : open)
      if (cross(*e, edge))
        throw InputError(fmt::format("its boundary crosses itself near {:.10g}, {:.10g}", edge.a.x, edge.a.y),
                         shape.where, kValid);
    open.push_back(&edge);
  }
}

}  // namespace lockstep::urban
