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

std::vector<Value> difference_of(std::span<const Value> x, std::span<const Value> from) {
  std::vector<Value> r;
  for (size_t k = 0; k < x.size(); ++k) r.push_back(x[k] - from[k]);
  return r;
}

Quaternion quaternion_of(std::span<const Value> q) { return {q[0], q[1], q[2], q[3]}; }

/// The rotation vector that takes `from` to `q`, in the frame of `from`.
Vec3 turn_between(std::span<const Value> q, std::span<const Value> from) {
  return log_map(conjugate(quaternion_of(from)) * quaternion_of(q));
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
  return {fmt::format("euclidean{}", size), size, size, sum_of, {}, difference_of};
}

Manifold so2() {
  return {"so2",
          1,
          1,
          plain([](std::span<const Value> x, std::span<const Value> d) {
            return std::vector<Value>{wrap(x[0] + d[0])};
          }),
          {},
          [](std::span<const Value> x, std::span<const Value> from) {
            return std::vector<Value>{wrap(x[0] - from[0])};
          }};
}

Manifold so3() {
  return {"so3",
          4,
          3,
          plain([](std::span<const Value> x, std::span<const Value> d) {
            const Quaternion q = turned(x, d);
            return std::vector<Value>{q.w, q.x, q.y, q.z};
          }),
          {{0, 4}},
          [](std::span<const Value> x, std::span<const Value> from) {
            const Vec3 d = turn_between(x, from);
            return std::vector<Value>{d[0], d[1], d[2]};
          }};
}

Manifold se2() {
  return {"se2",
          3,
          3,
          plain([](std::span<const Value> x, std::span<const Value> d) {
            return std::vector<Value>{x[0] + d[0], x[1] + d[1], wrap(x[2] + d[2])};
          }),
          {},
          [](std::span<const Value> x, std::span<const Value> from) {
            return std::vector<Value>{x[0] - from[0], x[1] - from[1], wrap(x[2] - from[2])};
          }};
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
          {{3, 4}},
          [](std::span<const Value> x, std::span<const Value> from) {
            const Vec3 d = rotate(conjugate(quaternion_of(from.subspan(3))),
                                  Vec3{{x[0] - from[0], x[1] - from[1], x[2] - from[2]}});
            const Vec3 turn = turn_between(x.subspan(3), from.subspan(3));
            return std::vector<Value>{d[0], d[1], d[2], turn[0], turn[1], turn[2]};
          }};
}

// Steps follow great circles.
Manifold sphere2() {
  return {"sphere2",
          3,
          2,
          plain([](std::span<const Value> n, std::span<const Value> d) {
            const auto [b1, b2] = basis_at(Vec3{{n[0], n[1], n[2]}});
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
          {{0, 3}},
          [](std::span<const Value> n, std::span<const Value> from) {
            const auto [u, v] = sphere_log(Vec3{{n[0], n[1], n[2]}}, Vec3{{from[0], from[1], from[2]}});
            return std::vector<Value>{u, v};
          }};
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
  decltype(Manifold::minus) minus;
  if (inner.minus)
    minus = [inner, fixed](std::span<const Value> x, std::span<const Value> from) {
      const std::vector<Value> whole = inner.minus(x, from);
      std::vector<Value> out;
      for (int k = 0; k < inner.tangent; ++k)
        if (!std::binary_search(fixed.begin(), fixed.end(), k)) out.push_back(whole[size_t(k)]);
      return out;
    };
  return {name,
          inner.ambient,
          free,
          [inner, fixed](std::span<const Value> x, std::span<const Value> d) {
            std::vector<Value> whole;
            size_t next = 0;
            for (int k = 0; k < inner.tangent; ++k)
              whole.push_back(std::binary_search(fixed.begin(), fixed.end(), k) ? x[0].graph().constant(0)
                                                                                : d[next++]);
            return inner.plus(x, whole);
          },
          inner.unit_vectors,
          minus};
}

Manifold product(const Manifold& a, const Manifold& b) {
  std::vector<Manifold::UnitVector> unit_vectors = a.unit_vectors;
  for (const Manifold::UnitVector& u : b.unit_vectors) unit_vectors.push_back({a.ambient + u.first, u.count});
  decltype(Manifold::minus) minus;
  if (a.minus && b.minus)
    minus = [a, b](std::span<const Value> x, std::span<const Value> from) {
      const size_t own = size_t(a.ambient);
      std::vector<Value> out = a.minus(x.first(own), from.first(own));
      for (const Value& v : b.minus(x.subspan(own), from.subspan(own))) out.push_back(v);
      return out;
    };
  return {a.name + " x " + b.name,
          a.ambient + b.ambient,
          a.tangent + b.tangent,
          [a, b](std::span<const Value> x, std::span<const Value> d) {
            std::vector<Value> r = a.plus(x.first(size_t(a.ambient)), d.first(size_t(a.tangent)));
            for (const Value& v : b.plus(x.subspan(size_t(a.ambient)), d.subspan(size_t(a.tangent))))
              r.push_back(v);
            return r;
          },
          std::move(unit_vectors),
          std::move(minus)};
}

}  // namespace lockstep::solve
