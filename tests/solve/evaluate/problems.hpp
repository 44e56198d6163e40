// Problems that the tests of evaluation share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve::test {

inline std::vector<double> random_numbers(size_t count, uint64_t seed, double low = -1, double high = 1) {
  std::mt19937_64 engine(seed);
  std::vector<double> numbers;
  for (size_t k = 0; k < count; ++k) numbers.push_back(low + (high - low) * double(engine() >> 11) * 0x1p-53);
  return numbers;
}

/// `count` tuples of different blocks out of `blocks`.
inline std::vector<int32_t> random_tuples(int64_t count, int width, int32_t blocks, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<int32_t> indices;
  for (int64_t i = 0; i < count; ++i)
    for (int k = 0; k < width; ++k)
      for (;;) {
        const int32_t b = int32_t(engine() % uint64_t(blocks));
        bool fresh = true;
        for (int j = 0; j < k; ++j) fresh = fresh && indices[size_t(i * width + j)] != b;
        if (!fresh) continue;
        indices.push_back(b);
        break;
      }
  return indices;
}

/// Each number within `tolerance` times the largest expected one, or times 1.
inline void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                        const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double scale = 1;
  for (const double v : expected) scale = std::max(scale, std::abs(v));
  for (size_t k = 0; k < got.size(); ++k)
    ASSERT_NEAR(got[k], expected[k], tolerance * scale) << what << " " << k;
}

inline void normalize_rows(std::vector<double>& x, size_t stride, size_t first, size_t size) {
  for (size_t at = 0; at < x.size(); at += stride) {
    double n = 0;
    for (size_t k = 0; k < size; ++k) n += x[at + first + k] * x[at + first + k];
    for (size_t k = 0; k < size; ++k) x[at + first + k] /= std::sqrt(n);
  }
}

inline TermType spring_type(RobustLoss loss = {}) {
  return {"spring",
          {3, 3},
          1,
          [](const TermArguments& a) { return std::vector<Value>{norm(a.vec3(0) - a.vec3(1)) - a.data(0)}; },
          loss};
}

/// Difference of two poses (tx, ty, tz, qw, qx, qy, qz) from a measured one, with weights.
inline TermType pose_type(RobustLoss loss = {}) {
  return {"pose",
          {7, 7},
          7,
          [](const TermArguments& a) {
            const auto q0 = a.quaternion(0, 3), q1 = a.quaternion(1, 3);
            const autodiff::Vec3 t = rotate(conjugate(q0), a.vec3(1) - a.vec3(0));
            const autodiff::Quaternion measured{a.data(3), a.data(4), a.data(5), a.data(6)};
            const autodiff::Vec3 turn = log_map(conjugate(measured) * (conjugate(q0) * q1));
            std::vector<Value> r;
            for (int k = 0; k < 3; ++k) r.push_back(t[k] - a.data(k));
            for (int k = 0; k < 3; ++k) r.push_back(2.0 * turn[k]);
            return r;
          },
          loss};
}

/// Springs between many points and few, poses, directions, angles and an energy, with losses, data,
/// high-degree and fixed blocks.
inline Problem mixed_problem(int points, uint64_t seed) {
  Problem problem;
  const auto positions = problem.add_blocks("points", euclidean(3), random_numbers(size_t(points) * 3, seed));
  std::vector<double> pose_numbers = random_numbers(9 * 7, seed + 1);
  normalize_rows(pose_numbers, 7, 3, 4);
  const auto poses = problem.add_blocks("poses", se3(), pose_numbers);
  std::vector<double> direction_numbers = random_numbers(5 * 3, seed + 2);
  normalize_rows(direction_numbers, 3, 0, 3);
  const auto directions = problem.add_blocks("directions", sphere2(), direction_numbers);
  const auto angles = problem.add_blocks("angles", so2(), random_numbers(4, seed + 3));

  const auto edges = random_tuples(points * 3, 2, points, seed + 4);
  problem.add_terms(spring_type(), {positions, positions}, edges,
                    random_numbers(edges.size() / 2, seed + 5, 0.1, 1));
  const auto far = random_tuples(points, 2, points, seed + 6);
  problem.add_terms(spring_type({RobustLoss::Kind::huber, 0.3}), {positions, positions}, far,
                    random_numbers(far.size() / 2, seed + 7, 0.1, 1));
  const auto pairs = random_tuples(14, 2, 9, seed + 8);
  std::vector<double> measured = random_numbers(14 * 7, seed + 9);
  normalize_rows(measured, 7, 3, 4);
  problem.add_terms(pose_type({RobustLoss::Kind::cauchy, 0.7}), {poses, poses}, pairs, measured);
  // Every point is seen from one of five directions: blocks of high degree.
  std::vector<int32_t> seen;
  for (int k = 0; k < points; ++k) seen.insert(seen.end(), {k, k % 5 == 4 ? 4 : 0});
  problem.add_terms({"plane",
                     {3, 3},
                     1,
                     [](const TermArguments& a) {
                       return std::vector<Value>{dot(a.vec3(0), a.vec3(1)) - a.data(0),
                                                 0.25 * sin(3.0 * dot(a.vec3(0), a.vec3(1)))};
                     },
                     {RobustLoss::Kind::geman_mcclure, 2}},
                    {positions, directions}, seen, random_numbers(size_t(points), seed + 10));
  problem.add_terms({"angle",
                     {1, 3},
                     0,
                     [](const TermArguments& a) {
                       return std::vector<Value>{cos(a.x(0)) * a.x(1, 0) - sin(a.x(0)) * a.x(1, 1),
                                                 select(a.x(1, 2) > 0, a.x(1, 2), 0.5 * a.x(1, 2))};
                     },
                     {RobustLoss::Kind::tukey, 1.5}},
                    {angles, positions}, std::vector<int32_t>{0, 0, 1, 1, 2, 2, 3, 3, 0, 4}, {});
  problem.add_terms({"bend",
                     {3, 3, 3},
                     0,
                     [](const TermArguments& a) {
                       const auto u = a.vec3(0) - a.vec3(1), v = a.vec3(2) - a.vec3(1);
                       return std::vector<Value>{cube(dot(u, v)) * 0.1 + 0.05 * squared_norm(u)};
                     },
                     {},
                     true},
                    {positions, positions, positions}, random_tuples(points, 3, points, seed + 11), {});
  problem.fix(positions, 1);
  problem.fix(poses, 2);
  return problem;
}

}  // namespace lockstep::solve::test
