#include "solve/mesh/energies/terms.hpp"

#include <fmt/format.h>

#include <limits>

namespace lockstep::solve::mesh {
namespace {

using autodiff::Vec2;
using autodiff::Vec3;

std::vector<Value> components(const Vec3& v) { return {v[0], v[1], v[2]}; }

}  // namespace

TermType spring_term() {
  return {"mesh.spring", {3, 3}, 2, [](const TermArguments& a) {
            return std::vector{(safe_norm(a.vec3(0) - a.vec3(1)) - a.data(0)) * a.data(1)};
          }};
}

TermType laplacian_term(int neighbours) {
  return {fmt::format("mesh.laplacian.{}", neighbours), std::vector<int>(size_t(neighbours) + 1, 3),
          neighbours, [neighbours](const TermArguments& a) {
            const Vec3 vertex = a.vec3(0);
            Vec3 total = (a.vec3(1) - vertex) * a.data(0);
            for (int k = 1; k < neighbours; ++k) total = total + (a.vec3(k + 1) - vertex) * a.data(k);
            return components(total);
          }};
}

TermType attachment_term() {
  return {"mesh.attachment", {3}, 4, [](const TermArguments& a) {
            return components((a.vec3(0) - Vec3{{a.data(0), a.data(1), a.data(2)}}) * a.data(3));
          }};
}

TermType normal_difference_term() {
  return {"mesh.normal_difference", {3, 3, 3, 3}, 1, [](const TermArguments& a) {
            const Vec3 edge = a.vec3(1) - a.vec3(0);
            const Vec3 n1 = cross(edge, a.vec3(2) - a.vec3(0)), n2 = cross(a.vec3(3) - a.vec3(0), edge);
            return components((n1 / sqrt(squared_norm(n1) + 1e-12) - n2 / sqrt(squared_norm(n2) + 1e-12)) *
                              a.data(0));
          }};
}

TermType bend_term() {
  return {"mesh.bend", {3, 3, 3, 3}, 2, [](const TermArguments& a) {
            const Vec3 edge = a.vec3(1) - a.vec3(0);
            const Vec3 n1 = cross(edge, a.vec3(2) - a.vec3(0)), n2 = cross(a.vec3(3) - a.vec3(0), edge);
            const Value sine = dot(cross(n1, n2), edge) * safe_rsqrt(squared_norm(edge));
            return std::vector{(safe_atan2(sine, dot(n1, n2)) - a.data(0)) * a.data(1)};
          }};
}

TermType gravity_term() {
  TermType type{"mesh.gravity", {3}, 5, [](const TermArguments& a) {
                  const Value height = dot(a.vec3(0), Vec3{{a.data(1), a.data(2), a.data(3)}}) - a.data(4);
                  return std::vector{a.data(0) * height};
                }};
  type.energy = true;
  return type;
}

TermType arap_term() {
  return {"mesh.arap", {3, 3, 4}, 4, [](const TermArguments& a) {
            const Vec3 rest{{a.data(0), a.data(1), a.data(2)}};
            return components((a.vec3(1) - a.vec3(0) - rotate(a.quaternion(2), rest)) * a.data(3));
          }};
}

TermType symmetric_dirichlet_term() {
  TermType type{
      "mesh.symmetric_dirichlet", {2, 2, 2}, 5, [](const TermArguments& a) {
        const Vec2 p = a.vec2(1) - a.vec2(0), q = a.vec2(2) - a.vec2(0);
        const Value xx = p[0] * a.data(0) + q[0] * a.data(2), xy = p[0] * a.data(1) + q[0] * a.data(3),
                    yx = p[1] * a.data(0) + q[1] * a.data(2), yy = p[1] * a.data(1) + q[1] * a.data(3);
        const Value squares = square(xx) + square(xy) + square(yx) + square(yy);
        const Value determinant = xx * yy - xy * yx;
        const autodiff::Condition upright = determinant > 0;
        // |J^-1|^2 = |J|^2 / det^2 in two dimensions.
        const Value energy = a.data(4) * squares * (1.0 + 1.0 / square(select(upright, determinant, 1)));
        return std::vector{select(upright, energy, std::numeric_limits<double>::infinity())};
      }};
  type.energy = true;
  return type;
}

}  // namespace lockstep::solve::mesh
