#include "solve/mesh/geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::solve::mesh {
namespace {

Point scaled_normal(const TriangleMesh& mesh, int64_t t) {
  const auto [a, b, c] = triangle(mesh, t);
  const Point p = point(mesh, a);
  return cross(point(mesh, b) - p, point(mesh, c) - p);
}

Point unit(const Point& v) { return v * (1 / length(v)); }

}  // namespace

Point normal_of(const TriangleMesh& mesh, int64_t t) { return unit(scaled_normal(mesh, t)); }
double area_of(const TriangleMesh& mesh, int64_t t) { return 0.5 * length(scaled_normal(mesh, t)); }

double total_area(const TriangleMesh& mesh) {
  double sum = 0;
  for (int64_t t = 0; t < mesh.face_count(); ++t) sum += area_of(mesh, t);
  return sum;
}

std::vector<double> vertex_areas(const TriangleMesh& mesh) {
  std::vector<double> areas(size_t(mesh.vertex_count()), 0.0);
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    for (const int32_t v : triangle(mesh, t)) areas[size_t(v)] += area_of(mesh, t) / 3;
  }
  return areas;
}

std::vector<double> edge_lengths(const TriangleMesh& mesh, const Connectivity& connectivity) {
  std::vector<double> lengths;
  lengths.reserve(connectivity.edges.size());
  for (const auto& [a, b] : connectivity.edges) lengths.push_back(length(point(mesh, b) - point(mesh, a)));
  return lengths;
}

double mean_edge_length(const TriangleMesh& mesh, const Connectivity& connectivity) {
  double sum = 0;
  for (const double l : edge_lengths(mesh, connectivity)) sum += l;
  return sum / double(connectivity.edges.size());
}

double hinge_angle(const TriangleMesh& mesh, const Hinge& h) {
  const Point a = point(mesh, h.a), e = point(mesh, h.b) - a;
  const Point n1 = cross(e, point(mesh, h.c) - a), n2 = cross(point(mesh, h.d) - a, e);
  return std::atan2(dot(cross(n1, n2), e) / length(e), dot(n1, n2));
}

int64_t edge_index(const Connectivity& connectivity, int32_t a, int32_t b) {
  const std::array<int32_t, 2> key{std::min(a, b), std::max(a, b)};
  const auto it = std::lower_bound(connectivity.edges.begin(), connectivity.edges.end(), key);
  if (it == connectivity.edges.end() || *it != key)
    throw InternalError(fmt::format("no edge {}-{}", a, b), "mesh edge_index", "an edge of the mesh");
  return it - connectivity.edges.begin();
}

std::vector<double> cotangent_weights(const TriangleMesh& mesh, const Connectivity& connectivity) {
  std::vector<double> weights(connectivity.edges.size(), 0.0);
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const auto corners = triangle(mesh, t);
    for (size_t k = 0; k < 3; ++k) {
      const int32_t tip = corners[k], a = corners[(k + 1) % 3], b = corners[(k + 2) % 3];
      const Point u = point(mesh, a) - point(mesh, tip), v = point(mesh, b) - point(mesh, tip);
      weights[size_t(edge_index(connectivity, a, b))] += 0.5 * dot(u, v) / length(cross(u, v));
    }
  }
  return weights;
}

std::vector<double> angle_defects(const TriangleMesh& mesh, const Connectivity& connectivity) {
  std::vector<double> defects(size_t(mesh.vertex_count()));
  for (size_t v = 0; v < defects.size(); ++v)
    defects[v] = connectivity.on_boundary[v] ? std::numbers::pi : 2 * std::numbers::pi;
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const auto corners = triangle(mesh, t);
    for (size_t k = 0; k < 3; ++k) {
      const Point tip = point(mesh, corners[k]);
      const Point u = point(mesh, corners[(k + 1) % 3]) - tip, v = point(mesh, corners[(k + 2) % 3]) - tip;
      defects[size_t(corners[k])] -= std::atan2(length(cross(u, v)), dot(u, v));
    }
  }
  return defects;
}

std::vector<Curvature> classify_curvature(const TriangleMesh& mesh, const Connectivity& connectivity) {
  const double limit = 0.1 * 4 * std::numbers::pi / double(mesh.vertex_count());
  const std::vector<double> defects = angle_defects(mesh, connectivity);
  std::vector<Curvature> kinds(defects.size());
  for (size_t v = 0; v < kinds.size(); ++v) {
    kinds[v] = connectivity.on_boundary[v]    ? Curvature::boundary
               : std::abs(defects[v]) < limit ? Curvature::hinge
                                              : Curvature::seam;
  }
  return kinds;
}

Box bounding_box(const TriangleMesh& mesh) {
  Box box{point(mesh, 0), point(mesh, 0)};
  for (int64_t v = 1; v < mesh.vertex_count(); ++v) {
    const Point p = point(mesh, v);
    for (size_t c = 0; c < 3; ++c) {
      box.low[c] = std::min(box.low[c], p[c]);
      box.high[c] = std::max(box.high[c], p[c]);
    }
  }
  return box;
}

}  // namespace lockstep::solve::mesh
