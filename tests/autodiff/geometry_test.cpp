#include "lockstep/autodiff/geometry.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lockstep::autodiff {
namespace {

template <int N>
Vec<N> variables(Tape& g, const std::string& name) {
  Vec<N> v;
  for (int k = 0; k < N; ++k) v[k] = g.variable(name + std::to_string(k));
  return v;
}

class Geometry : public ::testing::Test {
 protected:
  std::mt19937 random{1};
  std::vector<double> point(size_t n, double low = -1, double high = 1) {
    std::uniform_real_distribution<double> range(low, high);
    std::vector<double> v(n);
    for (double& x : v) x = range(random);
    return v;
  }
};

TEST_F(Geometry, VectorFunctionsEqualComplexSteps) {
  Tape g;
  const Vec2 a = variables<2>(g, "a"), b = variables<2>(g, "b");
  const Vec3 u = variables<3>(g, "u"), v = variables<3>(g, "v");
  const Vec4 w = variables<4>(g, "w");
  const Value values[] = {cross(a, b),
                          dot(a, perpendicular(b)),
                          angle_between(a, b),
                          distance_to_line(a, b, {{u[0], u[1]}}),
                          dot(cross(u, v), u + v * 2.0),
                          angle_between(u, v),
                          norm(project(u, v)),
                          norm(reject(u, v)),
                          dot(normalize(u), v),
                          dot(safe_normalize(u), v),
                          safe_norm(w),
                          distance(u, v),
                          dot(lerp(u, v, 0.3), min(u, v)),
                          squared_norm(max(u, v)),
                          norm(w),
                          dot(multiply(u, v), u / 3.0)};
  for (int n = 0; n < 20; ++n)
    for (const Value& f : values) EXPECT_LE(check_gradient(f, point(14)).max_error, 1e-11) << print(f);
}

TEST_F(Geometry, SafeNormalizeOfZero) {
  Tape g;
  const Vec3 u = variables<3>(g, "u");
  const Vec3 n = safe_normalize(u);
  const auto d = evaluate<double>(gradient(n[0] + n[1] + safe_norm(u), {u[0], u[1], u[2]}), {0, 0, 0});
  for (double x : d) EXPECT_EQ(x, 0);
  EXPECT_EQ(evaluate(n[0], std::vector<double>{0, 0, 0}), 0);
}

Mat3 symmetric(const std::array<Value, 6>& s) {
  Mat3 m;
  m(0, 0) = s[0], m(1, 1) = s[1], m(2, 2) = s[2];
  m(0, 1) = m(1, 0) = s[3], m(0, 2) = m(2, 0) = s[4], m(1, 2) = m(2, 1) = s[5];
  return m;
}

TEST_F(Geometry, EigenvaluesOfSymmetricMatrices) {
  Tape g;
  std::array<Value, 6> s;
  for (int k = 0; k < 6; ++k) s[size_t(k)] = g.variable("s" + std::to_string(k));
  const Mat3 m = symmetric(s);
  const Vec3 e = symmetric_eigenvalues(m);
  for (int n = 0; n < 50; ++n) {
    const auto at = point(6);
    const auto values = evaluate<double>({e[0], e[1], e[2], trace(m), determinant(m)}, at);
    EXPECT_LE(values[0], values[1] + 1e-12);
    EXPECT_LE(values[1], values[2] + 1e-12);
    EXPECT_NEAR(values[0] + values[1] + values[2], values[3], 1e-12);
    EXPECT_NEAR(values[0] * values[1] * values[2], values[4], 1e-11);
    for (int k = 0; k < 3; ++k) {
      EXPECT_LE(check_gradient(e[k], at).max_error, 1e-9);
      const Vec3 v = symmetric_eigenvector(m, e[k]), residual = m * v - v * e[k];
      EXPECT_NEAR(evaluate(squared_norm(v), at), 1, 1e-12);
      EXPECT_LE(evaluate(squared_norm(residual), at), 1e-18);
      // The derivative of a simple eigenvalue is v v^T.
      const auto d = evaluate<double>(gradient(e[k], {s[0], s[3]}), at);
      const auto c = evaluate<double>({v[0], v[1]}, at);
      EXPECT_NEAR(d[0], c[0] * c[0], 1e-8);
      EXPECT_NEAR(d[1], 2 * c[0] * c[1], 1e-8);
    }
  }
  const std::vector<double> equal{2, 2, 2, 0, 0, 0};
  EXPECT_EQ(evaluate(e[0], equal), 2);
  for (double d : evaluate<double>(gradient(e[0], s), equal)) EXPECT_TRUE(std::isfinite(d));
}

TEST_F(Geometry, MatrixAlgebra) {
  Tape g;
  Mat3 m;
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 3; ++c) m(r, c) = g.variable("m");
  const Mat3 product = m * inverse(m);
  const auto at = point(9);
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(evaluate(product(r, c), at), r == c, 1e-12);
  EXPECT_LE(check_gradient(determinant(m) + trace(m * transpose(m)), at).max_error, 1e-13);
  EXPECT_LE(check_gradient(trace(inverse(m + identity3(g) * g.constant(3)) - outer(m.rows[0], m.rows[1])), at)
                .max_error,
            1e-12);
}

TEST_F(Geometry, Quaternions) {
  Tape g;
  const Vec3 v = variables<3>(g, "v"), p = variables<3>(g, "p");
  const Quaternion q = exp_map(v);
  const Vec3 rotated = rotate(q, p), by_matrix = rotation_matrix(q) * p, back = log_map(q);
  for (double scale : {1.0, 1e-2, 1e-5, 0.0}) {
    auto at = point(6);
    for (int k = 0; k < 3; ++k) at[size_t(k)] *= scale;
    EXPECT_NEAR(evaluate(squared_norm(q), at), 1, 1e-14);
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(evaluate(rotated[k], at), evaluate(by_matrix[k], at), 1e-14);
      EXPECT_NEAR(evaluate(back[k], at), at[size_t(k)], 1e-14);
      EXPECT_LE(check_gradient(rotated[k], at).max_error, 1e-12) << scale;
      const auto d = evaluate<double>(gradient(back[k], {v[0], v[1], v[2]}), at);
      for (int c = 0; c < 3; ++c) EXPECT_NEAR(d[size_t(c)], k == c, 1e-9) << scale;
    }
  }
  // Composition and inverse.
  const Quaternion unit = q * conjugate(q);
  EXPECT_NEAR(evaluate(unit.w, point(6)), 1, 1e-14);
  const Quaternion n = safe_normalize(Quaternion{v[0], v[1], v[2], p[0]});
  EXPECT_EQ(evaluate(n.w, std::vector<double>(6, 0.0)), 1);
  EXPECT_LE(check_gradient(n.w * n.x, point(6)).max_error, 1e-12);
  // The rotation by a half turn around z.
  const auto half = evaluate<double>({rotated[0], rotated[1]}, {0, 0, 3.14159265358979323846, 1, 2, 3});
  EXPECT_NEAR(half[0], -1, 1e-14);
  EXPECT_NEAR(half[1], -2, 1e-14);
}

}  // namespace
}  // namespace lockstep::autodiff
