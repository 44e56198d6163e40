// A map from ranges: a robot drives around, counts its steps, and measures distances to beacons whose places
// nobody knows. Its path and the beacons come out of one nonlinear least squares problem; the covariance says
// how well each beacon is known. docs/solve.md walks through this file.
#include <cmath>
#include <cstdio>
#include <numbers>
#include <random>
#include <vector>

#include "lockstep/solve.hpp"

using namespace lockstep;
using autodiff::Value, autodiff::Vec2;

namespace {

// Observations of the robot. The truth is kept to judge the result by.
struct Drive {
  std::vector<double> path, beacons;      // truth: (n, 3) x, y, heading; (m, 2)
  std::vector<int32_t> steps, sightings;  // (n-1, 2) poses; (k, 2) pose, beacon
  std::vector<double> odometry, ranges;   // (n-1, 3) forwards, sideways, turn; (k, 1)
  static constexpr double kStep = 0.02, kTurn = 0.004, kRange = 0.05;  // standard deviations: m, rad, m
};

Drive drive_around() {
  Drive d;
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise;
  const int poses = 60;
  d.beacons = {0, 0, 8, 1, 3, 7, -4, 5, 5, -4};
  for (int k = 0; k < poses; ++k) {
    const double angle = 2 * std::numbers::pi * k / poses;
    d.path.insert(d.path.end(), {4 * std::cos(angle) + 2, 3 * std::sin(angle) + 2,
                                 std::remainder(angle + std::numbers::pi / 2, 2 * std::numbers::pi)});
  }
  for (int32_t k = 0; k + 1 < poses; ++k) {
    const double *a = &d.path[3 * size_t(k)], *b = a + 3;
    const double dx = b[0] - a[0], dy = b[1] - a[1], c = std::cos(a[2]), s = std::sin(a[2]);
    d.steps.insert(d.steps.end(), {k, k + 1});
    d.odometry.insert(d.odometry.end(),
                      {c * dx + s * dy + d.kStep * noise(random), c * dy - s * dx + d.kStep * noise(random),
                       std::remainder(b[2] - a[2], 2 * std::numbers::pi) + d.kTurn * noise(random)});
  }
  for (int32_t k = 0; k < poses; ++k)
    for (int32_t b = 0; b < 5; ++b) {
      const double dx = d.beacons[2 * size_t(b)] - d.path[3 * size_t(k)],
                   dy = d.beacons[2 * size_t(b) + 1] - d.path[3 * size_t(k) + 1];
      // One range in forty is an echo, far too long.
      const double echo = (7 * k + b) % 40 == 0 ? 4 : 0;
      d.sightings.insert(d.sightings.end(), {k, b});
      d.ranges.push_back(std::hypot(dx, dy) + d.kRange * noise(random) + echo);
    }
  return d;
}

}  // namespace

int main() try {
  const Drive drive = drive_around();

  // 1. The start: the path by odometry alone, beacons anywhere near.
  std::vector<double> path(drive.path.begin(), drive.path.begin() + 3);
  for (size_t k = 0; k < drive.odometry.size(); k += 3) {
    const double x = path[k], y = path[k + 1], heading = path[k + 2];
    const double forwards = drive.odometry[k], sideways = drive.odometry[k + 1];
    path.insert(path.end(), {x + std::cos(heading) * forwards - std::sin(heading) * sideways,
                             y + std::sin(heading) * forwards + std::cos(heading) * sideways,
                             heading + drive.odometry[k + 2]});
  }
  std::vector<double> beacons = drive.beacons;
  for (size_t k = 0; k < beacons.size(); ++k) beacons[k] += k % 2 ? 1.0 : -1.0;

  // 2. Blocks: numbers that move together, on a manifold.
  solve::Problem problem;
  const solve::BlockSet poses = problem.add_blocks("poses", solve::se2(), path);
  const solve::BlockSet marks = problem.add_blocks("beacons", solve::euclidean(2), beacons);

  // 3. Residuals, written once each. Slots are blocks; data are numbers of the instance.
  const solve::TermType step{"step", {3, 3}, 3, [](const solve::TermArguments& a) {
                               const Vec2 d = a.vec2(1) - a.vec2(0);
                               const Value c = cos(a.x(0, 2)), s = sin(a.x(0, 2)),
                                           turn = a.x(1, 2) - a.x(0, 2) - a.data(2);
                               constexpr double kTau = 2 * std::numbers::pi;
                               return std::vector{(c * d[0] + s * d[1] - a.data(0)) / Drive::kStep,
                                                  (c * d[1] - s * d[0] - a.data(1)) / Drive::kStep,
                                                  (turn - kTau * rint(turn / kTau)) / Drive::kTurn};
                             }};
  solve::TermType range{"range", {3, 2}, 1, [](const solve::TermArguments& a) {
                          return std::vector{(norm(a.vec2(0) - a.vec2(1)) - a.data(0)) / Drive::kRange};
                        }};
  range.loss = solve::parse_robust_loss("cauchy:2");  // Echoes lose their pull.

  // 4. Instances by index tables: one row of blocks, one row of data.
  problem.add_terms(step, {poses, poses}, drive.steps, drive.odometry);
  problem.add_terms(range, {poses, marks}, drive.sightings, drive.ranges);
  problem.fix(poses, 0);  // Someone must say where the map is.

  // 5. Minimise, on the first device that works.
  Context context;
  const solve::Summary summary = solve::minimize(problem, context);
  std::printf("%s\n", solve::report(summary).c_str());

  // 6. Where the beacons are, and how well that is known.
  bool right = solve::converged(summary.termination);
  for (int64_t b = 0; b < 5; ++b) {
    const std::pair<solve::BlockSet, int64_t> block(marks, b);
    const std::vector<double> covariance = solve::covariance(problem, context, {&block, 1});
    const double x = problem.values(marks)[2 * size_t(b)], y = problem.values(marks)[2 * size_t(b) + 1];
    const double sx = std::sqrt(covariance[0]), sy = std::sqrt(covariance[3]);
    const double ex = x - drive.beacons[2 * size_t(b)], ey = y - drive.beacons[2 * size_t(b) + 1];
    std::printf("beacon %d: x %7.3f +- %.3f, y %7.3f +- %.3f; off by %.3f, %.3f\n", int(b), x, sx, y, sy, ex,
                ey);
    right = right && std::abs(ex) < 5 * sx && std::abs(ey) < 5 * sy && sx < 0.2 && sy < 0.2;
  }
  return right ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "range_map: %s\n", error.what());
  return 2;
}
