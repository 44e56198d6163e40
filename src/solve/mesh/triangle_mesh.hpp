// Points and triangles of io::TriangleMesh.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "io/meshes/mesh.hpp"

namespace lockstep::solve::mesh {

using io::TriangleMesh;
using Point = std::array<double, 3>;

inline Point point(const TriangleMesh& mesh, int64_t v) {
  const double* p = &mesh.vertices[size_t(3 * v)];
  return {p[0], p[1], p[2]};
}
inline std::array<int32_t, 3> triangle(const TriangleMesh& mesh, int64_t t) {
  const int32_t* f = &mesh.faces[size_t(3 * t)];
  return {f[0], f[1], f[2]};
}

inline Point operator+(const Point& a, const Point& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
inline Point operator-(const Point& a, const Point& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
inline Point operator*(const Point& a, double s) { return {a[0] * s, a[1] * s, a[2] * s}; }
inline double dot(const Point& a, const Point& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline double length(const Point& a) { return std::sqrt(dot(a, a)); }
inline Point cross(const Point& a, const Point& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

}  // namespace lockstep::solve::mesh
