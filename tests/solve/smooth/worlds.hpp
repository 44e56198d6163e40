// Pose graphs that the tests of smoothing generate.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "lockstep/solve/factors.hpp"
#include "lockstep/solve/smoother.hpp"

namespace lockstep::solve::test {

inline Context cpu_context(int threads = 0) {
  ContextOptions options;
  options.device = "cpu", options.threads = threads;
  return Context(options);
}

/// Of the first set of blocks.
inline std::vector<double> values_of(const Problem& problem) {
  const auto own = problem.values({0, problem.number()});
  return {own.begin(), own.end()};
}

struct Edge2 {
  int32_t from = 0, to = 0;
  std::vector<double> z;  // (x, y, angle)
};

/// A drive on a grid of streets; a pose sees earlier ones near it.
inline std::vector<Edge2> streets(int poses, uint64_t seed, double noise = 0.03) {
  std::mt19937_64 engine(seed);
  const auto uniform = [&] { return double(engine() >> 11) * 0x1p-53; };
  std::vector<std::vector<double>> truth{{0, 0, 0}};
  std::vector<Edge2> edges;
  const auto see = [&](int from, int to) {
    const auto &a = truth[size_t(from)], &b = truth[size_t(to)];
    const double c = std::cos(a[2]), s = std::sin(a[2]), x = b[0] - a[0], y = b[1] - a[1];
    const auto off = [&] { return noise * (2 * uniform() - 1); };
    edges.push_back({from, to, {c * x + s * y + off(), c * y - s * x + off(), b[2] - a[2] + off()}});
  };
  double heading = 0;
  for (int k = 1; k < poses; ++k) {
    if (k % 3 == 0 && uniform() < 0.5) heading += uniform() < 0.6 ? M_PI_2 : -M_PI_2;
    std::vector<double> next = truth.back();
    if (std::abs(next[0] + std::cos(heading)) > 5 || std::abs(next[1] + std::sin(heading)) > 5)
      heading += M_PI_2;
    next = {next[0] + std::cos(heading), next[1] + std::sin(heading), heading};
    truth.push_back(next);
    see(k - 1, k);
    for (int j = 0; j + 10 < k; ++j)
      if (std::hypot(truth[size_t(j)][0] - next[0], truth[size_t(j)][1] - next[1]) < 0.5 && uniform() < 0.3) {
        see(j, k);
        break;
      }
  }
  return edges;
}

inline std::vector<double> compose2(const std::vector<double>& a, const std::vector<double>& b) {
  const double c = std::cos(a[2]), s = std::sin(a[2]);
  return {a[0] + c * b[0] - s * b[1], a[1] + s * b[0] + c * b[1], std::remainder(a[2] + b[2], 2 * M_PI)};
}

inline std::vector<double> row2(const std::vector<double>& z, double deviation = 0.03) {
  return se2_between_data(z, w_from_standard_deviations(std::vector<double>(3, deviation)));
}

/// A smoother of poses in the plane, the first one held.
struct Drive {
  Smoother smoother;
  BlockSet poses;
  FactorKind between;
  explicit Drive(Context& context, const SmootherOptions& options = {}, const RobustLoss& loss = {})
      : smoother(context, options) {
    poses = smoother.add_set("poses", se2());
    between = smoother.add_kind(se2_between_log(loss), {poses, poses});
    smoother.append_blocks(poses, std::vector<double>{0, 0, 0}, 0);
    smoother.fix(poses, 0);
  }
  /// The pose where it is new, and the edge.
  TermSet add(const Edge2& e) {
    if (e.from == e.to - 1) smoother.append_blocks(poses, compose2(smoother.value(poses, e.from), e.z), e.to);
    return smoother.add_terms(between, std::vector<int32_t>{e.from, e.to}, row2(e.z));
  }
};

}  // namespace lockstep::solve::test
