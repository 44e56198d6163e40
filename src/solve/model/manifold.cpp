// The manifolds: plus(x, delta) of each.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/solve.hpp"
#include "solve/model/pose_math.hpp"

namespace lockstep::solve {

using autodiff::Condition;
using autodiff::Quaternion;
using autodiff::Vec3;

namespace {

using Plus = std::vector<Value>(std::span<const Value>, std::span<const Value>);
/// As a plain function, which trace_manifold() traces once in a process.
Plus* plain(Plus* plus) { return plus; }

/// a + b, where b = 0 leaves a as it is.
std::vector<Value> sum_of(std::span<const Value> x, std::span<const Value> delta) {
  std::vector<Value> r;
  for (size_t k = 0; k < x.size(); ++k) r.push_back(x[k] + delta[k]);
  return r;
}

Quaternion turned(std::span<const Value> q, std::span<const Value> rotation_vector) {
  return Quaternion{q[0], q[1], q[2], q[3]} *
         exp_map(Vec3{{rotation_vector[0], rotation_vector[1], rotation_vector[2]}});
}

void check_size(int size, const char* where) {
  if (size < 1) throw InputError(fmt::format("size {}", size), where, "1 or more");
}

}  // namespace

Manifold euclidean(int size) {
  check_size(size, "solve euclidean");
  return {fmt::format("euclidean{}", size), size, size, sum_of};
}

Manifold so2() {
  return {"so2", 1, 1, plain([](std::span<const Value> x, std::span<const Value> d) {
            return std::vector<Value>{wrap(x[0] + d[0])};
          })};
}

Manifold so3() {
  return {"so3",
          4,
          3,
          plain([](std::span<const Value> x, std::span<const Value> d) {
            const Quaternion q = turned(x, d);
            return std::vector<Value>{q.w, q.x, q.y, q.z};
          }),
          {{0, 4}}};
}

Manifold se2() {
  return {"se2", 3, 3, plain([](std::span<const Value> x, std::span<const Value> d) {
            return std::vector<Value>{x[0] + d[0], x[1] + d[1], wrap(x[2] + d[2])};
          })};
}

Manifold se3() {
  return {"se3",
          7,
          6,
          plain([](std::span<const Value> x, std::span<const Value> d) {
            const Quaternion q{x[3], x[4], x[5], x[6]};
            const Vec3 moved = rotate(q, Vec3{{d[0], d[1], d[2]}});
            const Quaternion r = turned(x.subspan(3), d.subspan(3));
            return std::vector<Value>{x[0] + moved[0], x[1] + moved[1], x[2] + moved[2], r.w, r.x, r.y, r.z};
          }),
          {{3, 4}}};
}

// The tangent basis of Duff et al., "Building an Orthonormal Basis, Revisited" (JCGT 2017): smooth but at
// z = 0, where its sign changes. The step follows the great circle.
Manifold sphere2() {
  return {"sphere2",
          3,
          2,
          plain([](std::span<const Value> n, std::span<const Value> d) {
            autodiff::Tape& g = n[0].graph();
            const Value s = copysign(g.constant(1), n[2]), a = -1.0 / (s + n[2]), b = n[0] * n[1] * a;
            const Vec3 b1{{1 + s * n[0] * n[0] * a, s * b, -(s * n[0])}}, b2{{b, s + n[1] * n[1] * a, -n[1]}};
            const Value t = d[0] * d[0] + d[1] * d[1];
            const Condition large = t > 1e-6;
            const Value angle = sqrt(select(large, t, 1));
            const Value sine =
                select(large, sin(angle) / angle, 1 - t * (1.0 / 6 - t * (1.0 / 120 - t * (1.0 / 5040))));
            const Value cosine = select(large, cos(angle), 1 - t * (0.5 - t * (1.0 / 24 - t * (1.0 / 720))));
            std::vector<Value> r;
            for (int k = 0; k < 3; ++k)
              r.push_back(n[size_t(k)] * cosine + (b1[k] * d[0] + b2[k] * d[1]) * sine);
            return r;
          }),
          {{0, 3}}};
}

Manifold subset(const Manifold& inner, std::vector<int> fixed) {
  std::sort(fixed.begin(), fixed.end());
  std::string name = inner.name + " without";
  for (size_t k = 0; k < fixed.size(); ++k) {
    if (fixed[k] < 0 || fixed[k] >= inner.tangent || (k && fixed[k] == fixed[k - 1]))
      throw InputError(
          fmt::format("coordinate {}", fixed[k]), "solve subset",
          fmt::format("different tangent coordinates of {} in 0 to {}", inner.name, inner.tangent - 1));
    name += fmt::format(" {}", fixed[k]);
  }
  if (int(fixed.size()) == inner.tangent)
    throw InputError("all coordinates fixed", "solve subset", "one free coordinate or more; use fix() else");
  const int free = inner.tangent - int(fixed.size());
  return {name, inner.ambient, free,
          [inner, fixed](std::span<const Value> x, std::span<const Value> d) {
            std::vector<Value> whole;
            size_t next = 0;
            for (int k = 0; k < inner.tangent; ++k)
              whole.push_back(std::binary_search(fixed.begin(), fixed.end(), k) ? x[0].graph().constant(0)
                                                                                : d[next++]);
            return inner.plus(x, whole);
          },
          inner.unit_vectors};
}

Manifold product(const Manifold& a, const Manifold& b) {
  std::vector<Manifold::UnitVector> unit_vectors = a.unit_vectors;
  for (const Manifold::UnitVector& u : b.unit_vectors) unit_vectors.push_back({a.ambient + u.first, u.count});
  return {a.name + " x " + b.name, a.ambient + b.ambient, a.tangent + b.tangent,
          [a, b](std::span<const Value> x, std::span<const Value> d) {
            std::vector<Value> r = a.plus(x.first(size_t(a.ambient)), d.first(size_t(a.tangent)));
            for (const Value& v : b.plus(x.subspan(size_t(a.ambient)), d.subspan(size_t(a.tangent))))
              r.push_back(v);
            return r;
          },
          std::move(unit_vectors)};
}

}  // namespace lockstep::solve
