#include "solve/mesh/connectivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::solve::mesh {
namespace {

/// A triangle whose doubled area is below this share of its longest side squared counts as degenerate.
constexpr double kLeastArea = 1e-13;

struct HalfEdge {
  int32_t from, to, opposite, triangle;
};

[[noreturn]] void refuse(const std::string& what, std::string_view where, std::string_view expected) {
  throw InputError(what, where, expected);
}
/// Rejects a mesh that repair() can fix.
[[noreturn]] void refuse_mendable(const std::string& what, std::string_view where,
                                  std::string_view expected) {
  throw InputError(what, where, expected).with_hint("--repair fixes such a mesh");
}

void check_shapes(const TriangleMesh& mesh, std::string_view where) {
  if (mesh.vertices.size() % 3 != 0 || mesh.faces.size() % 3 != 0) {
    refuse(fmt::format("{} coordinates and {} indices", mesh.vertices.size(), mesh.faces.size()), where,
           "three of them for each vertex and triangle");
  }
  if (mesh.vertex_count() == 0 || mesh.face_count() == 0) {
    refuse(fmt::format("{} vertices and {} triangles", mesh.vertex_count(), mesh.face_count()), where,
           "a mesh that is not empty");
  }
}

void check_elements(const TriangleMesh& mesh, std::string_view where) {
  for (int64_t v = 0; v < mesh.vertex_count(); ++v) {
    for (const double x : point(mesh, v)) {
      if (!std::isfinite(x)) refuse(fmt::format("vertex {} has {}", v, x), where, "finite positions");
    }
  }
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const auto [a, b, c] = triangle(mesh, t);
    for (const int32_t v : {a, b, c}) {
      if (v < 0 || v >= mesh.vertex_count()) {
        refuse(fmt::format("triangle {} has vertex {}", t, v), where,
               fmt::format("vertices 0 to {}", mesh.vertex_count() - 1));
      }
    }
    if (a == b || b == c || c == a) {
      refuse_mendable(fmt::format("triangle {} ({}, {}, {}) has a vertex twice", t, a, b, c), where,
                      "three different vertices");
    }
    if (degenerate(point(mesh, a), point(mesh, b), point(mesh, c))) {
      refuse_mendable(fmt::format("triangle {} ({}, {}, {}) has no area", t, a, b, c), where,
                      "triangles that are not degenerate");
    }
  }
}

std::vector<HalfEdge> sorted_half_edges(const TriangleMesh& mesh) {
  std::vector<HalfEdge> half;
  half.reserve(mesh.faces.size());
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const auto [a, b, c] = triangle(mesh, t);
    const auto id = int32_t(t);
    half.push_back({a, b, c, id});
    half.push_back({b, c, a, id});
    half.push_back({c, a, b, id});
  }
  std::sort(half.begin(), half.end(), [](const HalfEdge& x, const HalfEdge& y) {
    const auto key = [](const HalfEdge& h) {
      return std::array{std::min(h.from, h.to), std::max(h.from, h.to), h.from < h.to ? 0 : 1, h.triangle};
    };
    return key(x) < key(y);
  });
  return half;
}

// Fills edges and hinges; gives the half edges without a partner.
std::vector<HalfEdge> pair_edges(const std::vector<HalfEdge>& half, std::string_view where,
                                 Connectivity& out) {
  std::vector<HalfEdge> open;
  for (size_t k = 0; k < half.size();) {
    const int32_t low = std::min(half[k].from, half[k].to), high = std::max(half[k].from, half[k].to);
    size_t end = k + 1;
    while (end < half.size() && std::min(half[end].from, half[end].to) == low &&
           std::max(half[end].from, half[end].to) == high)
      ++end;
    if (end - k > 2) {
      refuse_mendable(
          fmt::format("edge {}-{} has {} triangles ({}, {}, {}{})", low, high, end - k, half[k].triangle,
                      half[k + 1].triangle, half[k + 2].triangle, end - k > 3 ? ", …" : ""),
          where, "at most two triangles at an edge");
    }
    if (end - k == 2 && half[k].from == half[k + 1].from) {
      refuse_mendable(fmt::format("triangles {} and {} run the same way along edge {}-{}", half[k].triangle,
                                  half[k + 1].triangle, half[k].from, half[k].to),
                      where, "one orientation of all triangles");
    }
    out.edges.push_back({low, high});
    if (end - k == 2) {
      out.hinges.push_back({low, high, half[k].opposite, half[k + 1].opposite});
    } else {
      open.push_back(half[k]);
    }
    k = end;
  }
  return open;
}

// Corner (v, from, to): inside a triangle at v the ring runs from `from` to `to`.
struct Corner {
  int32_t from, to;
};

void build_stars(const TriangleMesh& mesh, std::string_view where, Connectivity& out) {
  const auto n = size_t(mesh.vertex_count());
  std::vector<int64_t> begin(n + 1, 0);
  for (const int32_t v : mesh.faces) ++begin[size_t(v) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Corner> corners(mesh.faces.size());
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const auto [a, b, c] = triangle(mesh, t);
    corners[size_t(next[size_t(a)]++)] = {b, c};
    corners[size_t(next[size_t(b)]++)] = {c, a};
    corners[size_t(next[size_t(c)]++)] = {a, b};
  }
  out.star_begin.assign(n + 1, 0);
  out.on_boundary.assign(n, 0);
  out.ring.reserve(2 * out.edges.size());
  std::vector<Corner> fan;
  for (size_t v = 0; v < n; ++v) {
    fan.assign(corners.begin() + begin[v], corners.begin() + begin[v + 1]);
    if (fan.empty())
      refuse_mendable(fmt::format("vertex {} belongs to no triangle", v), where,
                      "vertices that triangles use");
    std::sort(fan.begin(), fan.end(), [](const Corner& x, const Corner& y) { return x.from < y.from; });
    const auto from = [&](int32_t vertex) {
      const auto it = std::lower_bound(fan.begin(), fan.end(), vertex,
                                       [](const Corner& c, int32_t value) { return c.from < value; });
      return it != fan.end() && it->from == vertex ? it : fan.end();
    };
    // A boundary fan starts at the neighbour where no corner ends.
    int32_t start = fan.front().from;
    int open = 0;
    for (const Corner& c : fan) {
      const bool entered =
          std::any_of(fan.begin(), fan.end(), [&](const Corner& other) { return other.to == c.from; });
      if (!entered) {
        start = c.from;
        ++open;
      }
    }
    out.on_boundary[v] = open > 0;
    size_t walked = 0;
    int32_t at = start;
    do {
      out.ring.push_back(at);
      const auto corner = from(at);
      if (corner == fan.end()) break;
      at = corner->to;
      ++walked;
    } while (at != start);
    if (walked != fan.size() || open > 1) {
      refuse_mendable(fmt::format("two fans of triangles meet at vertex {}", v), where,
                      "one fan of triangles around each vertex");
    }
    out.star_begin[v + 1] = int64_t(out.ring.size());
  }
}

void build_loops(const std::vector<HalfEdge>& open, Connectivity& out) {
  // At a manifold boundary vertex exactly one open half edge starts.
  std::vector<int32_t> next(size_t(out.vertices), -1);
  for (const HalfEdge& h : open) next[size_t(h.from)] = h.to;
  for (const HalfEdge& h : open) {
    if (next[size_t(h.from)] < 0) continue;
    std::vector<int32_t> loop;
    for (int32_t v = h.from; next[size_t(v)] >= 0;) {
      loop.push_back(v);
      v = std::exchange(next[size_t(v)], -1);
    }
    out.boundary_loops.push_back(std::move(loop));
  }
  std::stable_sort(out.boundary_loops.begin(), out.boundary_loops.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

int64_t count_components(const Connectivity& connectivity) {
  std::vector<int32_t> root(size_t(connectivity.vertices));
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int32_t v) {
    while (root[size_t(v)] != v) v = root[size_t(v)] = root[size_t(root[size_t(v)])];
    return v;
  };
  int64_t count = connectivity.vertices;
  for (const auto& [a, b] : connectivity.edges) {
    const int32_t x = find(a), y = find(b);
    if (x == y) continue;
    root[size_t(std::max(x, y))] = std::min(x, y);
    --count;
  }
  return count;
}

}  // namespace

bool degenerate(const Point& p, const Point& q, const Point& r) {
  const Point normal = cross(q - p, r - p);
  const double longest = std::max({dot(q - p, q - p), dot(r - q, r - q), dot(p - r, p - r)});
  return !(std::sqrt(dot(normal, normal)) > kLeastArea * longest);
}

Connectivity build_connectivity(const TriangleMesh& mesh, std::string_view where) {
  check_shapes(mesh, where);
  check_elements(mesh, where);
  Connectivity out;
  out.vertices = mesh.vertex_count();
  out.triangles = mesh.face_count();
  const std::vector<HalfEdge> open = pair_edges(sorted_half_edges(mesh), where, out);
  build_stars(mesh, where, out);
  build_loops(open, out);
  out.components = count_components(out);
  return out;
}

}  // namespace lockstep::solve::mesh
