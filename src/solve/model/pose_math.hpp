// Mathematics of poses in terms.
#pragma once

#include <array>
#include <numbers>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// The angle in [-pi, pi); its derivative is 1.
inline Value wrap(const Value& angle) {
  constexpr double turn = 2 * std::numbers::pi;
  return angle - turn * floor((angle + std::numbers::pi) * (1 / turn));
}

/// v turned by the angle with this cosine and sine.
inline autodiff::Vec2 turn(const autodiff::Vec2& v, const Value& cosine, const Value& sine) {
  return {{cosine * v[0] - sine * v[1], sine * v[0] + cosine * v[1]}};
}

/// The tangent basis of Duff et al., "Building an Orthonormal Basis, Revisited" (JCGT 2017): smooth but at z = 0, where
/// its sign changes.
inline std::array<autodiff::Vec3, 2> basis_at(const autodiff::Vec3& n) {
  const Value s = copysign(n[0].graph().constant(1), n[2]), a = -1.0 / (s + n[2]), b = n[0] * n[1] * a;
  return {autodiff::Vec3{{1 + s * n[0] * n[0] * a, s * b, -(s * n[0])}},
          autodiff::Vec3{{b, s + n[1] * n[1] * a, -n[1]}}};
}

/// The way along the great circle from one unit vector to another, in the basis at `from`. Opposite ones have the length pi
/// and the first direction of the basis.
inline std::array<Value, 2> sphere_log(const autodiff::Vec3& to, const autodiff::Vec3& from) {
  const auto [b1, b2] = basis_at(from);
  const Value cosine = dot(to, from), along = dot(b1, to), v = dot(b2, to);
  const Value least = select(cosine < 0 && along * along + v * v < 1e-24, along.graph().constant(1e-12), 0);
  const Value u = along + least, t = u * u + v * v;
  const auto large = t > 1e-6 || cosine < 0;
  const Value sine = sqrt(select(large, t, 1));
  // asin(x) / x as a series in t = x^2; the next term is below 1e-20.
  const Value factor =
      select(large, atan2(sine, cosine) / sine, 1 + t * (1.0 / 6 + t * (3.0 / 40 + t * (15.0 / 336))));
  return {u * factor, v * factor};
}

/// W e, W upper triangular by rows from data number `first`.
inline std::vector<Value> whitened(const TermArguments& a, int first, const std::vector<Value>& e) {
  std::vector<Value> residual;
  int k = first;
  for (size_t r = 0; r < e.size(); ++r) {
    Value sum = a.data(k++) * e[r];
    for (size_t c = r + 1; c < e.size(); ++c) sum = sum + a.data(k++) * e[c];
    residual.push_back(sum);
  }
  return residual;
}

}  // namespace lockstep::solve
