// Small vectors, 3x3 matrices and quaternions of Values.
#pragma once

#include <array>

#include "lockstep/autodiff.hpp"

namespace lockstep::autodiff {

/// N Values. `v[0]` … `v[N-1]`.
template <int N>
struct Vec {
  std::array<Value, N> c;
  const Value& operator[](int k) const { return c[size_t(k)]; }
  Value& operator[](int k) { return c[size_t(k)]; }
};
using Vec2 = Vec<2>;
using Vec3 = Vec<3>;
using Vec4 = Vec<4>;

namespace detail {
template <int N, class F>
Vec<N> each(F f) {
  Vec<N> r;
  for (int k = 0; k < N; ++k) r[k] = f(k);
  return r;
}
}  // namespace detail

template <int N>
Vec<N> operator+(const Vec<N>& a, const Vec<N>& b) {
  return detail::each<N>([&](int k) { return a[k] + b[k]; });
}
template <int N>
Vec<N> operator-(const Vec<N>& a, const Vec<N>& b) {
  return detail::each<N>([&](int k) { return a[k] - b[k]; });
}
template <int N>
Vec<N> operator-(const Vec<N>& a) {
  return detail::each<N>([&](int k) { return -a[k]; });
}
template <int N, class S>
Vec<N> operator*(const Vec<N>& a, const S& s) {
  return detail::each<N>([&](int k) { return a[k] * s; });
}
template <int N, class S>
  requires(!std::same_as<S, Vec<N>>)
Vec<N> operator*(const S& s, const Vec<N>& a) {
  return a * s;
}
template <int N, class S>
Vec<N> operator/(const Vec<N>& a, const S& s) {
  return detail::each<N>([&](int k) { return a[k] / s; });
}
template <int N>
Vec<N> multiply(const Vec<N>& a, const Vec<N>& b) {
  return detail::each<N>([&](int k) { return a[k] * b[k]; });
}
template <int N>
Vec<N> min(const Vec<N>& a, const Vec<N>& b) {
  return detail::each<N>([&](int k) { return min(a[k], b[k]); });
}
template <int N>
Vec<N> max(const Vec<N>& a, const Vec<N>& b) {
  return detail::each<N>([&](int k) { return max(a[k], b[k]); });
}
template <int N, class S>
Vec<N> lerp(const Vec<N>& a, const Vec<N>& b, const S& t) {
  return a + (b - a) * t;
}
template <int N>
Vec<N> select(const Condition& c, const Vec<N>& a, const Vec<N>& b) {
  return detail::each<N>([&](int k) { return select(c, a[k], b[k]); });
}

template <int N>
Value dot(const Vec<N>& a, const Vec<N>& b) {
  Value total = a[0] * b[0];
  for (int k = 1; k < N; ++k) total = total + a[k] * b[k];
  return total;
}
template <int N>
Value squared_norm(const Vec<N>& a) {
  return dot(a, a);
}
/// Length; its derivative at the zero vector is not finite.
template <int N>
Value norm(const Vec<N>& a) {
  return sqrt(squared_norm(a));
}
/// Length; 0 with derivative 0 where the squared length is at most `floor`.
template <int N>
Value safe_norm(const Vec<N>& a, double floor = 0) {
  return safe_sqrt(squared_norm(a), floor);
}
template <int N>
Value distance(const Vec<N>& a, const Vec<N>& b) {
  return norm(a - b);
}
template <int N>
Vec<N> normalize(const Vec<N>& a) {
  return a / norm(a);
}
/// a / |a|; the zero vector with derivatives 0 where the squared length is at most `floor`.
template <int N>
Vec<N> safe_normalize(const Vec<N>& a, double floor = 0) {
  return a * safe_rsqrt(squared_norm(a), floor);
}
/// project: the component of `a` along `b`. reject: the component of `a` perpendicular to `b`. `b` must not be zero.
template <int N>
Vec<N> project(const Vec<N>& a, const Vec<N>& b) {
  return b * (dot(a, b) / squared_norm(b));
}
template <int N>
Vec<N> reject(const Vec<N>& a, const Vec<N>& b) {
  return a - project(a, b);
}

/// z component of the cross product.
Value cross(const Vec2& a, const Vec2& b);
Vec3 cross(const Vec3& a, const Vec3& b);
/// `a` rotated by 90 degrees counter-clockwise.
Vec2 perpendicular(const Vec2& a);
/// Angle in radians from 0 to pi, by atan2(|a x b|, a . b), which is accurate near 0 and pi. If a vector is zero, the
/// angle is 0 with derivatives 0. For parallel and opposite vectors the derivatives do not exist: Vec3 returns 0, Vec2
/// those for a x b > 0.
Value angle_between(const Vec2& a, const Vec2& b);
Value angle_between(const Vec3& a, const Vec3& b);
/// Distance of `p` from the line through `a` and `b`, which must differ.
Value distance_to_line(const Vec2& p, const Vec2& a, const Vec2& b);

/// 3 x 3 matrix: m(row, column).
struct Mat3 {
  std::array<Vec3, 3> rows;
  const Value& operator()(int r, int c) const { return rows[size_t(r)][c]; }
  Value& operator()(int r, int c) { return rows[size_t(r)][c]; }
};
Mat3 operator+(const Mat3& a, const Mat3& b);
Mat3 operator-(const Mat3& a, const Mat3& b);
Mat3 operator*(const Mat3& a, const Value& s);
Mat3 operator*(const Mat3& a, const Mat3& b);
Vec3 operator*(const Mat3& a, const Vec3& v);
Mat3 transpose(const Mat3& a);
Mat3 outer(const Vec3& a, const Vec3& b);
Mat3 identity3(Tape& graph);
Value trace(const Mat3& a);
Value determinant(const Mat3& a);
/// Inverse by cofactors. The determinant must not be 0.
Mat3 inverse(const Mat3& a);

/// Eigenvalues of a symmetric matrix in ascending order; only the upper triangle is read. If all three are equal, each
/// has the derivative of their mean. The derivatives of two equal eigenvalues do not exist; there the derivative of the
/// angle of the trigonometric formula is taken as 0.
Vec3 symmetric_eigenvalues(const Mat3& a);
/// Unit eigenvector of a symmetric matrix for a simple eigenvalue: the longest cross product of two rows of
/// A - lambda I, normalised. The zero vector if the eigenvalue is not simple.
Vec3 symmetric_eigenvector(const Mat3& a, const Value& eigenvalue);

/// w + xi + yj + zk.
struct Quaternion {
  Value w, x, y, z;
};
Quaternion operator*(const Quaternion& a, const Quaternion& b);
Quaternion conjugate(const Quaternion& q);
Value squared_norm(const Quaternion& q);
/// q / |q|. For the zero quaternion: the identity, with derivatives 0.
Quaternion safe_normalize(const Quaternion& q);
/// q v q* for a unit quaternion.
Vec3 rotate(const Quaternion& q, const Vec3& v);
Mat3 rotation_matrix(const Quaternion& unit);
/// The unit quaternion of the rotation by |v| radians about v. Smooth at v = 0 (series for |v|^2 <= 1e-6).
Quaternion exp_map(const Vec3& v);
/// Rotation vector of a unit quaternion, with length in [0, pi]: the inverse of exp_map. Smooth at the identity.
Vec3 log_map(const Quaternion& unit);

}  // namespace lockstep::autodiff
