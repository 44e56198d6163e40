#include "solve/mesh/repair.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "solve/mesh/connectivity.hpp"

namespace lockstep::solve::mesh {
namespace {

using Triangle = std::array<int32_t, 3>;

/// For each vertex the first one at its place.
std::vector<int32_t> first_at_place(const TriangleMesh& mesh, int64_t& welded) {
  std::map<Point, int32_t> at;
  std::vector<int32_t> first;
  for (int64_t v = 0; v < mesh.vertex_count(); ++v) {
    Point p = point(mesh, v);
    for (double& c : p) c += 0.0;  // -0 and 0 are one place
    first.push_back(at.try_emplace(p, int32_t(v)).first->second);
    welded += first.back() != int32_t(v);
  }
  return first;
}

std::vector<Triangle> proper_triangles(const TriangleMesh& mesh, const std::vector<int32_t>& first,
                                       int64_t& dropped) {
  std::vector<Triangle> kept;
  std::set<Triangle> seen;
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    Triangle f = triangle(mesh, t);
    for (int32_t& v : f) v = first[size_t(v)];
    Triangle key = f;
    std::sort(key.begin(), key.end());
    const bool repeated = key[0] == key[1] || key[1] == key[2];
    if (repeated || degenerate(point(mesh, f[0]), point(mesh, f[1]), point(mesh, f[2])) ||
        !seen.insert(key).second) {
      ++dropped;
      continue;
    }
    kept.push_back(f);
  }
  return kept;
}

/// Corner k of a triangle is its vertex k; side k runs from corner k to the next one.
struct Side {
  int32_t triangle, side;
};
using Edges = std::map<std::array<int32_t, 2>, std::vector<Side>>;

Edges edges_of(const std::vector<Triangle>& faces) {
  Edges edges;
  for (size_t t = 0; t < faces.size(); ++t)
    for (int32_t k = 0; k < 3; ++k) {
      const int32_t a = faces[t][size_t(k)], b = faces[t][size_t((k + 1) % 3)];
      edges[{std::min(a, b), std::max(a, b)}].push_back({int32_t(t), k});
    }
  return edges;
}

/// Turns triangles by their neighbours over edges of two triangles, piece by piece from the first triangle of
/// each; of a piece the smaller part is what counts as turned.
void orient(std::vector<Triangle>& faces, int64_t& turned) {
  std::vector<std::vector<std::array<int32_t, 2>>> neighbours(
      faces.size());  // triangle, 1: runs the same way
  for (const auto& [edge, sides] : edges_of(faces)) {
    if (sides.size() != 2) continue;
    const auto [a, b] = std::pair(sides[0], sides[1]);
    const int32_t same =
        faces[size_t(a.triangle)][size_t(a.side)] == faces[size_t(b.triangle)][size_t(b.side)];
    neighbours[size_t(a.triangle)].push_back({b.triangle, same});
    neighbours[size_t(b.triangle)].push_back({a.triangle, same});
  }
  std::vector<int8_t> turn(faces.size(), -1);
  for (size_t start = 0; start < faces.size(); ++start) {
    if (turn[start] >= 0) continue;
    std::vector<int32_t> piece{int32_t(start)};
    turn[start] = 0;
    int64_t count = 0;
    for (size_t at = 0; at < piece.size(); ++at) {
      count += turn[size_t(piece[at])];
      for (const auto& [other, same] : neighbours[size_t(piece[at])])
        if (turn[size_t(other)] < 0) {
          turn[size_t(other)] = int8_t(turn[size_t(piece[at])] ^ same);
          piece.push_back(other);
        }
    }
    const int8_t away = 2 * count > int64_t(piece.size());
    for (const int32_t t : piece)
      if (turn[size_t(t)] != away) std::swap(faces[size_t(t)][1], faces[size_t(t)][2]), ++turned;
  }
}

/// Corners that stay one vertex: joined across edges of two triangles that run against each other.
class Corners {
 public:
  explicit Corners(const std::vector<Triangle>& faces) : parent_(3 * faces.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const auto& [edge, sides] : edges_of(faces)) {
      if (sides.size() != 2) continue;
      const auto [a, b] = std::pair(sides[0], sides[1]);
      if (faces[size_t(a.triangle)][size_t(a.side)] == faces[size_t(b.triangle)][size_t(b.side)]) continue;
      join(3 * a.triangle + a.side, 3 * b.triangle + (b.side + 1) % 3);
      join(3 * a.triangle + (a.side + 1) % 3, 3 * b.triangle + b.side);
    }
  }
  int32_t root(int32_t c) {
    while (parent_[size_t(c)] != c) c = parent_[size_t(c)] = parent_[size_t(parent_[size_t(c)])];
    return c;
  }

 private:
  void join(int32_t a, int32_t b) {
    a = root(a), b = root(b);
    parent_[size_t(std::max(a, b))] = std::min(a, b);
  }
  std::vector<int32_t> parent_;
};

}  // namespace

Repair repair(const TriangleMesh& mesh) {
  Repair result;
  const auto valid = [&](int32_t v) { return v >= 0 && v < mesh.vertex_count(); };
  const auto finite = [](double x) { return std::isfinite(x); };
  if (!std::all_of(mesh.faces.begin(), mesh.faces.end(), valid) ||
      !std::all_of(mesh.vertices.begin(), mesh.vertices.end(), finite)) {
    result.mesh = mesh;
    return result;
  }
  const std::vector<int32_t> first = first_at_place(mesh, result.welded);
  std::vector<Triangle> faces = proper_triangles(mesh, first, result.dropped);
  orient(faces, result.turned);
  Corners corners(faces);

  // The first class of corners keeps its vertex; the others take copies.
  std::vector<int32_t> owner(size_t(mesh.vertex_count()), -1), place_of(3 * faces.size(), -1);
  std::vector<int32_t> copies;  // vertices of the file
  for (size_t c = 0; c < 3 * faces.size(); ++c) {
    const int32_t root = corners.root(int32_t(c)), v = faces[c / 3][c % 3];
    if (size_t(root) != c) continue;
    if (owner[size_t(v)] < 0)
      owner[size_t(v)] = root;
    else
      copies.push_back(v), place_of[c] = int32_t(copies.size()) - 1;
  }
  std::vector<int32_t> number(size_t(mesh.vertex_count()), -1);
  const auto add = [&](int32_t v) {
    const Point p = point(mesh, v);
    result.mesh.vertices.insert(result.mesh.vertices.end(), p.begin(), p.end());
    for (size_t c = 0; c < 3 && !mesh.colors.empty(); ++c)
      result.mesh.colors.push_back(mesh.colors[size_t(3 * v) + c]);
  };
  int32_t kept = 0;
  for (int64_t v = 0; v < mesh.vertex_count(); ++v) {
    if (owner[size_t(v)] >= 0)
      number[size_t(v)] = kept++, add(int32_t(v));
    else
      result.unused += first[size_t(v)] == int32_t(v);
  }
  for (const int32_t v : copies) add(v);
  result.copied = int64_t(copies.size());
  for (size_t c = 0; c < 3 * faces.size(); ++c) {
    const int32_t root = corners.root(int32_t(c)), place = place_of[size_t(root)];
    result.mesh.faces.push_back(place < 0 ? number[size_t(faces[c / 3][c % 3])] : kept + place);
  }
  return result;
}

}  // namespace lockstep::solve::mesh
