// x [-] from undoes from [+] delta on every manifold.
#include <gtest/gtest.h>

#include <cmath>

#include "../evaluate/problems.hpp"
#include "solve/model/host_function.hpp"

namespace lockstep::solve::test {
namespace {

std::vector<double> minus(const TracedManifold& m, std::vector<double> x, const std::vector<double>& from) {
  x.insert(x.end(), from.begin(), from.end());
  return autodiff::evaluate<double>(m.minus, x);
}

struct Case {
  Manifold manifold;
  std::vector<double> at;
  double farthest;  // |delta| up to which the way back is the same way
};
std::vector<Case> cases() {
  const double half = std::sqrt(0.5);
  const std::vector<double> pose{1, -2, 3, 0.5, -0.5, 0.5, 0.5}, upside{0, 0.6, -0.8};
  std::vector<double> both{0.3};
  both.insert(both.end(), pose.begin(), pose.end());
  return {{euclidean(3), {1, 2, -3}, 1e3},
          {so2(), {3.1}, 3.1},
          {so3(), {half, 0, -half, 0}, 3.1},
          {se2(), {4, 5, -3.1}, 3.1},
          {se3(), pose, 3.1},
          {sphere2(), {0, 0, 1}, 3.1},
          {sphere2(), upside, 3.1},
          {subset(se3(), {1, 4}), pose, 3.1},
          {product(so2(), se3()), both, 3.1}};
}

TEST(Minus, IsTheInverseOfPlus) {
  for (const Case& c : cases()) {
    const auto traced = trace_manifold(c.manifold, "test");
    for (const double size : {0.0, 1e-12, 1e-5, 1e-3, 0.0011, 0.3, 1.5, c.farthest}) {
      std::vector<double> delta = random_numbers(size_t(c.manifold.tangent), 7);
      double length = 0;
      for (const double d : delta) length += d * d;
      for (double& d : delta) d *= size / std::sqrt(length);
      const std::vector<double> back = minus(*traced, moved(*traced, c.at, delta), c.at);
      for (size_t k = 0; k < delta.size(); ++k)
        EXPECT_NEAR(back[k], delta[k], 3e-14 * std::max(1.0, size))
            << c.manifold.name << " " << size << " " << k;
    }
  }
}

TEST(Minus, OfAngleAndQuaternionTakesTheShortWay) {
  const auto angle = trace_manifold(so2(), "test"), turn = trace_manifold(so3(), "test");
  EXPECT_NEAR(minus(*angle, {-3.1}, {3.1})[0], 2 * M_PI - 6.2, 1e-15);
  const std::vector<double> q{std::cos(0.2), 0, std::sin(0.2), 0};
  std::vector<double> same = q;
  for (double& v : same) v = -v;
  EXPECT_NEAR(minus(*turn, same, {1, 0, 0, 0})[1], 0.4, 1e-15);  // the same rotation
}

/// The derivative to what x moves by, at x = from, is the identity.
TEST(Minus, HasTheSlopeOneWhereNothingMoved) {
  for (const Case& c : cases()) {
    const auto traced = trace_manifold(c.manifold, "test");
    const size_t ambient = size_t(c.manifold.ambient), tangent = size_t(c.manifold.tangent);
    std::vector<double> twice = c.at, still = c.at;
    twice.insert(twice.end(), c.at.begin(), c.at.end());
    still.resize(ambient + tangent, 0);
    const std::vector<double> back = autodiff::evaluate<double>(traced->minus_slopes, twice),
                              there = autodiff::evaluate<double>(traced->slopes, still);
    for (size_t i = 0; i < tangent; ++i)
      for (size_t j = 0; j < tangent; ++j) {
        double sum = 0;
        for (size_t k = 0; k < ambient; ++k) sum += back[i * ambient + k] * there[k * tangent + j];
        EXPECT_NEAR(sum, i == j, 1e-14) << c.manifold.name << " " << i << " " << j;
      }
  }
}

}  // namespace
}  // namespace lockstep::solve::test
