#include "solve/mesh/parameterize.hpp"

#include <fmt/format.h>

#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "lockstep/error.hpp"
#include "solve/mesh/geometry.hpp"

namespace lockstep::solve::mesh {
namespace {

// J of one triangle: columns of the images times the rest frame.
std::array<double, 4> jacobian(const TriangleMesh& mesh, const std::vector<double>& uv,
                               const std::vector<double>& frames, int64_t t) {
  const auto [a, b, c] = triangle(mesh, t);
  const auto image = [&](int32_t v, size_t k) { return uv[size_t(2 * v) + k] - uv[size_t(2 * a) + k]; };
  const double* d = &frames[size_t(5 * t)];
  return {image(b, 0) * d[0] + image(c, 0) * d[2], image(b, 0) * d[1] + image(c, 0) * d[3],
          image(b, 1) * d[0] + image(c, 1) * d[2], image(b, 1) * d[1] + image(c, 1) * d[3]};
}

}  // namespace

void check_disk(const Connectivity& connectivity, std::string_view where) {
  if (connectivity.components != 1)
    throw InputError(fmt::format("a mesh of {} pieces", connectivity.components), where, "one piece");
  if (connectivity.boundary_loops.size() != 1) {
    throw InputError(fmt::format("a mesh with {} boundary loops", connectivity.boundary_loops.size()), where,
                     "one: a disk can be laid flat")
        .with_hint(connectivity.boundary_loops.empty() ? "cut a closed mesh open first"
                                                       : "close its holes first");
  }
  if (connectivity.euler_characteristic() != 1) {
    throw InputError(fmt::format("a mesh with {} handles", (1 - connectivity.euler_characteristic()) / 2),
                     where, "a disk");
  }
}

std::vector<double> tutte_embedding(const TriangleMesh& mesh, const Connectivity& connectivity) {
  check_disk(connectivity, "tutte embedding");
  const std::vector<int32_t>& loop = connectivity.boundary_loops[0];
  const auto n = size_t(mesh.vertex_count());
  std::vector<double> uv(2 * n, 0.0);
  std::vector<double> reached{0};
  for (size_t k = 0; k < loop.size(); ++k) {
    const Point edge = point(mesh, loop[(k + 1) % loop.size()]) - point(mesh, loop[k]);
    reached.push_back(reached.back() + length(edge));
  }
  const double radius = std::sqrt(total_area(mesh) / std::numbers::pi);
  for (size_t k = 0; k < loop.size(); ++k) {
    const double angle = 2 * std::numbers::pi * reached[k] / reached.back();
    uv[size_t(2 * loop[k])] = radius * std::cos(angle);
    uv[size_t(2 * loop[k]) + 1] = radius * std::sin(angle);
  }

  std::vector<int> unknown(n, -1);
  int unknowns = 0;
  for (size_t v = 0; v < n; ++v)
    if (!connectivity.on_boundary[v]) unknown[v] = unknowns++;
  if (unknowns == 0) return uv;
  std::vector<Eigen::Triplet<double>> entries;
  Eigen::MatrixXd right = Eigen::MatrixXd::Zero(unknowns, 2);
  for (size_t v = 0; v < n; ++v) {
    if (unknown[v] < 0) continue;
    const auto ring = connectivity.star(int64_t(v));
    entries.emplace_back(unknown[v], unknown[v], double(ring.size()));
    for (const int32_t w : ring) {
      if (unknown[size_t(w)] >= 0) {
        entries.emplace_back(unknown[v], unknown[size_t(w)], -1.0);
      } else {
        right(unknown[v], 0) += uv[size_t(2 * w)];
        right(unknown[v], 1) += uv[size_t(2 * w) + 1];
      }
    }
  }
  Eigen::SparseMatrix<double> laplacian(unknowns, unknowns);
  laplacian.setFromTriplets(entries.begin(), entries.end());
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factor(laplacian);
  if (factor.info() != Eigen::Success)
    throw InternalError("a singular Laplacian", "tutte embedding", "a connected mesh with a boundary");
  const Eigen::MatrixXd solution = factor.solve(right);
  for (size_t v = 0; v < n; ++v) {
    if (unknown[v] < 0) continue;
    uv[2 * v] = solution(unknown[v], 0);
    uv[2 * v + 1] = solution(unknown[v], 1);
  }
  return uv;
}

std::vector<double> rest_frames(const TriangleMesh& mesh) {
  const double total = total_area(mesh);
  std::vector<double> frames;
  frames.reserve(size_t(5 * mesh.face_count()));
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const auto [a, b, c] = triangle(mesh, t);
    const Point p = point(mesh, b) - point(mesh, a), q = point(mesh, c) - point(mesh, a);
    // Edges (l, 0) and (x, y) in the triangle's plane.
    const double l = length(p), x = dot(p, q) / l, y = length(cross(p, q)) / l;
    frames.insert(frames.end(), {1 / l, -x / (l * y), 0, 1 / y, 0.5 * l * y / total});
  }
  return frames;
}

std::vector<double> stretches(const TriangleMesh& mesh, const std::vector<double>& uv) {
  const std::vector<double> frames = rest_frames(mesh);
  std::vector<double> result;
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const auto [xx, xy, yx, yy] = jacobian(mesh, uv, frames, t);
    // Singular values as the sum and difference of the lengths of the conformal and anticonformal parts.
    const double conformal = 0.5 * std::hypot(xx + yy, yx - xy), anti = 0.5 * std::hypot(xx - yy, yx + xy);
    result.push_back(conformal + anti);
    result.push_back(conformal - anti);
  }
  return result;
}

double symmetric_dirichlet(const TriangleMesh& mesh, const std::vector<double>& uv) {
  const std::vector<double> frames = rest_frames(mesh), s = stretches(mesh, uv);
  double energy = 0;
  for (size_t t = 0; 5 * t < frames.size(); ++t) {
    const double large = s[2 * t], small = s[2 * t + 1];
    if (!(small > 0)) return std::numeric_limits<double>::infinity();
    energy += frames[5 * t + 4] * (large * large + small * small + 1 / (large * large) + 1 / (small * small));
  }
  return energy;
}

int64_t turned_over(const TriangleMesh& mesh, const std::vector<double>& uv) {
  const std::vector<double> s = stretches(mesh, uv);
  int64_t count = 0;
  for (size_t k = 1; k < s.size(); k += 2) count += !(s[k] > 0);
  return count;
}

std::string obj_with_uv(const TriangleMesh& mesh, const std::vector<double>& uv) {
  fmt::memory_buffer out;
  const auto end = std::back_inserter(out);
  for (int64_t v = 0; v < mesh.vertex_count(); ++v) {
    const Point p = point(mesh, v);
    fmt::format_to(end, "v {} {} {}\n", p[0], p[1], p[2]);
  }
  for (size_t k = 0; k + 1 < uv.size(); k += 2) fmt::format_to(end, "vt {} {}\n", uv[k], uv[k + 1]);
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const auto [a, b, c] = triangle(mesh, t);
    fmt::format_to(end, "f {0}/{0} {1}/{1} {2}/{2}\n", a + 1, b + 1, c + 1);
  }
  return fmt::to_string(out);
}

}  // namespace lockstep::solve::mesh
