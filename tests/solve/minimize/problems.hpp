// Small problems with known answers.
#pragma once

#include <cmath>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve::test {

struct Instance {
  Problem problem;
  BlockSet set;
};

/// Rosenbrock's valley from (-1.2, 1): least cost 0 at (1, 1).
inline Instance rosenbrock() {
  Instance out;
  const std::vector<double> start{-1.2, 1};
  out.set = out.problem.add_blocks("x", euclidean(2), start);
  const TermType type{"rosenbrock", {2}, 0, [](const TermArguments& a) {
                        return std::vector{10 * (a.x(0, 1) - square(a.x(0, 0))), 1 - a.x(0, 0)};
                      }};
  out.problem.add_terms(type, {out.set}, std::vector<int32_t>{0}, {});
  return out;
}

/// A straight line through points (t, y): slope and offset by linear least squares.
inline Instance line(const std::vector<double>& ty, const RobustLoss& loss = {}) {
  Instance out;
  const std::vector<double> start{0, 0};
  out.set = out.problem.add_blocks("line", euclidean(2), start);
  TermType type{"line", {2}, 2, [](const TermArguments& a) {
                  return std::vector{a.x(0, 0) * a.data(0) + a.x(0, 1) - a.data(1)};
                }};
  type.loss = loss;
  out.problem.add_terms(type, {out.set}, std::vector<int32_t>(ty.size() / 2, 0), ty);
  return out;
}

/// A net of springs, side by side points in space, the corners held; every spring is stretched where the net
/// is flat, and that is its minimum.
inline Instance net(int side) {
  Instance out;
  std::vector<double> points;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      points.push_back(i), points.push_back(j);
      points.push_back(0.3 * std::sin(1.7 * i + 0.9 * j));
    }
  out.set = out.problem.add_blocks("points", euclidean(3), points);
  const TermType spring{"spring", {3, 3}, 1, [](const TermArguments& a) {
                          return std::vector{norm(a.vec3(0) - a.vec3(1)) - a.data(0)};
                        }};
  std::vector<int32_t> edges;
  std::vector<double> lengths;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      const int at = i * side + j;
      const auto join = [&](int other, double length) {
        edges.insert(edges.end(), {at, other});
        lengths.push_back(0.95 * length);
      };
      if (j + 1 < side) join(at + 1, 1);
      if (i + 1 < side) join(at + side, 1);
      if (i + 1 < side && j + 1 < side) join(at + side + 1, std::sqrt(2.0));
    }
  out.problem.add_terms(spring, {out.set, out.set}, edges, lengths);
  const TermType anchor{"anchor", {3}, 3, [](const TermArguments& a) {
                          std::vector<Value> pull;
                          for (int k = 0; k < 3; ++k) pull.push_back(0.3 * (a.x(0, k) - a.data(k)));
                          return pull;
                        }};
  std::vector<int32_t> all;
  for (int k = 0; k < side * side; ++k) all.push_back(k);
  out.problem.add_terms(anchor, {out.set}, all, points);
  for (int k = 0; k < side * side; ++k)
    if (k / side == 0 || k / side == side - 1 || k % side == 0 || k % side == side - 1)
      out.problem.fix(out.set, k);
  return out;
}

}  // namespace lockstep::solve::test
