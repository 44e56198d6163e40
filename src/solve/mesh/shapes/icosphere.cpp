#include "solve/mesh/shapes/icosphere.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::solve {
namespace {

void normalize(double* v) {
  const double n = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  for (int k = 0; k < 3; ++k) v[k] /= n;
}

/// Edges of the faces, sorted by their vertices; the entries of both faces of an edge are adjacent.
struct HalfEdge {
  int32_t low, high, from, to, opposite;
};
std::vector<HalfEdge> half_edges(const std::vector<std::array<int32_t, 3>>& faces) {
  std::vector<HalfEdge> edges;
  edges.reserve(faces.size() * 3);
  for (const auto& f : faces)
    for (int k = 0; k < 3; ++k) {
      const int32_t a = f[size_t(k)], b = f[size_t((k + 1) % 3)], c = f[size_t((k + 2) % 3)];
      edges.push_back({std::min(a, b), std::max(a, b), a, b, c});
    }
  std::sort(edges.begin(), edges.end(), [](const HalfEdge& x, const HalfEdge& y) {
    return std::tie(x.low, x.high, x.opposite) < std::tie(y.low, y.high, y.opposite);
  });
  return edges;
}

}  // namespace

Icosphere icosphere(int subdivisions) {
  constexpr int kMost = 12;  // 168 million vertices
  if (subdivisions < 0 || subdivisions > kMost)
    throw InputError(fmt::format("an icosphere of {} subdivisions", subdivisions), "size",
                     fmt::format("0 to {}", kMost));
  const double p = std::numbers::phi;
  Icosphere s;
  for (const std::array<double, 3>& v : {std::array<double, 3>{-1, p, 0},
                                         {1, p, 0},
                                         {-1, -p, 0},
                                         {1, -p, 0},
                                         {0, -1, p},
                                         {0, 1, p},
                                         {0, -1, -p},
                                         {0, 1, -p},
                                         {p, 0, -1},
                                         {p, 0, 1},
                                         {-p, 0, -1},
                                         {-p, 0, 1}}) {
    s.vertices.insert(s.vertices.end(), v.begin(), v.end());
    normalize(&s.vertices[s.vertices.size() - 3]);
  }
  s.faces = {{0, 11, 5},  {0, 5, 1},  {0, 1, 7},  {0, 7, 10}, {0, 10, 11}, {1, 5, 9}, {5, 11, 4},
             {11, 10, 2}, {10, 7, 6}, {7, 1, 8},  {3, 9, 4},  {3, 4, 2},   {3, 2, 6}, {3, 6, 8},
             {3, 8, 9},   {4, 9, 5},  {2, 4, 11}, {6, 2, 10}, {8, 6, 7},   {9, 8, 1}};
  for (int level = 0; level < subdivisions; ++level) {
    const std::vector<HalfEdge> edges = half_edges(s.faces);
    std::vector<std::pair<std::pair<int32_t, int32_t>, int32_t>> middle;  // edge, vertex
    for (size_t k = 0; k < edges.size(); k += 2) {
      middle.push_back({{edges[k].low, edges[k].high}, int32_t(s.vertices.size() / 3)});
      for (int c = 0; c < 3; ++c)
        s.vertices.push_back(s.vertices[size_t(3 * edges[k].low + c)] +
                             s.vertices[size_t(3 * edges[k].high + c)]);
      normalize(&s.vertices[s.vertices.size() - 3]);
    }
    const auto between = [&](int32_t a, int32_t b) {
      const std::pair<int32_t, int32_t> key{std::min(a, b), std::max(a, b)};
      return std::lower_bound(middle.begin(), middle.end(), std::pair(key, int32_t(-1)))->second;
    };
    std::vector<std::array<int32_t, 3>> faces;
    for (const auto& f : s.faces) {
      const int32_t a = between(f[0], f[1]), b = between(f[1], f[2]), c = between(f[2], f[0]);
      faces.insert(faces.end(), {{f[0], a, c}, {f[1], b, a}, {f[2], c, b}, {a, b, c}});
    }
    s.faces = std::move(faces);
  }
  const std::vector<HalfEdge> edges = half_edges(s.faces);
  for (size_t k = 0; k < edges.size(); k += 2) {
    const HalfEdge &one = edges[k], &two = edges[k + 1];
    s.hinges.push_back({one.from, one.to, one.opposite, two.opposite});
  }
  return s;
}

}  // namespace lockstep::solve
