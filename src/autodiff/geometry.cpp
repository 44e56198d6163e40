#include "lockstep/autodiff/geometry.hpp"

namespace lockstep::autodiff {

Value cross(const Vec2& a, const Vec2& b) { return a[0] * b[1] - a[1] * b[0]; }
Vec3 cross(const Vec3& a, const Vec3& b) {
  return {{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]}};
}
Vec2 perpendicular(const Vec2& a) { return {{-a[1], a[0]}}; }
Value angle_between(const Vec2& a, const Vec2& b) { return safe_atan2(abs(cross(a, b)), dot(a, b)); }
Value angle_between(const Vec3& a, const Vec3& b) { return safe_atan2(safe_norm(cross(a, b)), dot(a, b)); }
Value distance_to_line(const Vec2& p, const Vec2& a, const Vec2& b) {
  return abs(cross(b - a, p - a)) / norm(b - a);
}

namespace {
template <class F>
Mat3 each3(F f) {
  Mat3 m;
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 3; ++c) m(r, c) = f(r, c);
  return m;
}
}  // namespace

Mat3 operator+(const Mat3& a, const Mat3& b) {
  return each3([&](int r, int c) { return a(r, c) + b(r, c); });
}
Mat3 operator-(const Mat3& a, const Mat3& b) {
  return each3([&](int r, int c) { return a(r, c) - b(r, c); });
}
Mat3 operator*(const Mat3& a, const Value& s) {
  return each3([&](int r, int c) { return a(r, c) * s; });
}
Mat3 operator*(const Mat3& a, const Mat3& b) {
  return each3([&](int r, int c) { return a(r, 0) * b(0, c) + a(r, 1) * b(1, c) + a(r, 2) * b(2, c); });
}
Vec3 operator*(const Mat3& a, const Vec3& v) {
  return {{dot(a.rows[0], v), dot(a.rows[1], v), dot(a.rows[2], v)}};
}
Mat3 transpose(const Mat3& a) {
  return each3([&](int r, int c) { return a(c, r); });
}
Mat3 outer(const Vec3& a, const Vec3& b) {
  return each3([&](int r, int c) { return a[r] * b[c]; });
}
Mat3 identity3(Tape& graph) {
  return each3([&](int r, int c) { return graph.constant(r == c); });
}
Value trace(const Mat3& a) { return a(0, 0) + a(1, 1) + a(2, 2); }
Value determinant(const Mat3& a) { return dot(a.rows[0], cross(a.rows[1], a.rows[2])); }
Mat3 inverse(const Mat3& a) {
  const Vec3 x = cross(a.rows[1], a.rows[2]), y = cross(a.rows[2], a.rows[0]),
             z = cross(a.rows[0], a.rows[1]);
  const Value det = dot(a.rows[0], x);
  return each3([&](int r, int c) { return (c == 0 ? x : c == 1 ? y : z)[r] / det; });
}

Vec3 symmetric_eigenvalues(const Mat3& a) {
  constexpr double kThirdTurn = 2.09439510239319549231;  // 2 pi / 3
  const Value mean = trace(a) / 3.0;
  const Value x = a(0, 0) - mean, y = a(1, 1) - mean, z = a(2, 2) - mean;
  const Value xy = a(0, 1), xz = a(0, 2), yz = a(1, 2);
  const Value p =
      safe_sqrt((square(x) + square(y) + square(z) + 2.0 * (square(xy) + square(xz) + square(yz))) / 6.0);
  const Value det = x * (y * z - square(yz)) - xy * (xy * z - yz * xz) + xz * (xy * yz - y * xz);
  const Value angle = safe_acos(safe_div(det, 2.0 * cube(p))) / 3.0;
  const Value high = mean + 2.0 * p * cos(angle), low = mean + 2.0 * p * cos(angle + kThirdTurn);
  return {{low, 3.0 * mean - high - low, high}};
}

Vec3 symmetric_eigenvector(const Mat3& a, const Value& eigenvalue) {
  const Vec3 r0{{a(0, 0) - eigenvalue, a(0, 1), a(0, 2)}}, r1{{a(0, 1), a(1, 1) - eigenvalue, a(1, 2)}},
      r2{{a(0, 2), a(1, 2), a(2, 2) - eigenvalue}};
  const Vec3 c01 = cross(r0, r1), c02 = cross(r0, r2), c12 = cross(r1, r2);
  const Value n01 = squared_norm(c01), n02 = squared_norm(c02), n12 = squared_norm(c12);
  const Condition second = n02 > n01;
  return safe_normalize(select(n12 > max(n01, n02), c12, select(second, c02, c01)));
}

Quaternion operator*(const Quaternion& a, const Quaternion& b) {
  return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
          a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}
Quaternion conjugate(const Quaternion& q) { return {q.w, -q.x, -q.y, -q.z}; }
Value squared_norm(const Quaternion& q) { return q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z; }
Quaternion safe_normalize(const Quaternion& q) {
  const Value n = squared_norm(q), scale = safe_rsqrt(n);
  return {select(n > 0, q.w * scale, 1), q.x * scale, q.y * scale, q.z * scale};
}
Vec3 rotate(const Quaternion& q, const Vec3& v) {
  const Vec3 axis{{q.x, q.y, q.z}}, t = cross(axis, v) * 2.0;
  return v + t * q.w + cross(axis, t);
}
Mat3 rotation_matrix(const Quaternion& q) {
  Mat3 m;
  m(0, 0) = 1 - 2.0 * (q.y * q.y + q.z * q.z), m(0, 1) = 2.0 * (q.x * q.y - q.w * q.z),
       m(0, 2) = 2.0 * (q.x * q.z + q.w * q.y);
  m(1, 0) = 2.0 * (q.x * q.y + q.w * q.z), m(1, 1) = 1 - 2.0 * (q.x * q.x + q.z * q.z),
       m(1, 2) = 2.0 * (q.y * q.z - q.w * q.x);
  m(2, 0) = 2.0 * (q.x * q.z - q.w * q.y), m(2, 1) = 2.0 * (q.y * q.z + q.w * q.x),
       m(2, 2) = 1 - 2.0 * (q.x * q.x + q.y * q.y);
  return m;
}

Quaternion exp_map(const Vec3& v) {
  const Value t = squared_norm(v);
  const Condition large = t > 1e-6;
  const Value angle = sqrt(select(large, t, 1));
  // sin(a/2)/a and cos(a/2) as series in a^2; the next terms are below 1e-20 relative.
  const Value s =
      select(large, sin(0.5 * angle) / angle, 0.5 - t * (1.0 / 48 - t * (1.0 / 3840 - t * (1.0 / 645120))));
  const Value c = select(large, cos(0.5 * angle), 1 - t * (1.0 / 8 - t * (1.0 / 384 - t * (1.0 / 46080))));
  return {c, v[0] * s, v[1] * s, v[2] * s};
}

Vec3 log_map(const Quaternion& unit) {
  const Value flip = select(unit.w < 0, unit.w.graph().constant(-1), 1);
  const Value w = unit.w * flip;
  const Vec3 v{{unit.x * flip, unit.y * flip, unit.z * flip}};
  const Value n2 = squared_norm(v);
  const Condition large = n2 > 1e-6;
  const Value n = sqrt(select(large, n2, 1));
  // 2 atan2(n, w) / n; near the identity 2/w (1 - r/3 + r^2/5 - r^3/7), r = n^2/w^2.
  const Value r = n2 / select(large, 1, w * w);
  const Value series =
      2.0 / select(large, 1, w) * (1 - r * (1.0 / 3 - r * (1.0 / 5 - r * (1.0 / 7 - r / 9.0))));
  return v * select(large, 2.0 * atan2(n, w) / n, series);
}

}  // namespace lockstep::autodiff
