// The network for directions: its fit against a plain one with gradients by complex steps, its state, its limits.
#include "forecast/predict/jump/network.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

namespace lockstep::forecast {
namespace {

using Complex = std::complex<double>;

struct Samples {
  std::vector<double> x, y;
};

/// y of a curve in two differences, with a little noise.
Samples samples_of(int count, uint32_t seed) {
  std::mt19937 draws(seed);
  std::uniform_real_distribution<double> uniform(-1.5, 1.5);
  Samples s;
  for (int k = 0; k < count; ++k) {
    const double a = uniform(draws), b = uniform(draws);
    s.x.insert(s.x.end(), {a, b});
    s.y.push_back(0.4 * a - 0.2 * b + 0.3 * std::tanh(2 * a - b) + 0.01 * uniform(draws));
  }
  return s;
}

/// The network as its header has it, for weights of any numbers.
template <class T>
T plain_value(const std::vector<T>& w, const double* x, size_t taps, size_t units) {
  T y = 0;
  for (size_t j = 0; j < taps; ++j) y += w[j] * x[j];
  for (size_t u = 0; u < units; ++u) {
    T inside = w[taps + units * taps + u];
    for (size_t j = 0; j < taps; ++j) inside += w[taps + u * taps + j] * x[j];
    y += w[taps + units * (taps + 1) + u] * std::tanh(inside);
  }
  return y;
}

/// a x = b by elimination with the largest pivots.
std::vector<double> plain_solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    size_t best = k;
    for (size_t i = k; i < n; ++i)
      if (std::abs(a[i][k]) > std::abs(a[best][k])) best = i;
    std::swap(a[k], a[best]), std::swap(b[k], b[best]);
    for (size_t i = k + 1; i < n; ++i) {
      const double f = a[i][k] / a[k][k];
      for (size_t j = k; j < n; ++j) a[i][j] -= f * a[k][j];
      b[i] -= f * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

/// Levenberg-Marquardt with slopes by complex steps.
std::vector<double> plain_fit(std::vector<double> w, const Samples& s, size_t taps, size_t units,
                              double ridge, bool first) {
  const size_t rows = s.y.size(), n = w.size();
  const double pull = 1e-3 * ridge * double(rows);
  const auto solve_linear = [&] {
    std::vector<std::vector<double>> gram(taps, std::vector<double>(taps));
    std::vector<double> right(taps);
    double trace = 0;
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < taps; ++i) {
        right[i] += s.x[r * taps + i] * s.y[r];
        trace += s.x[r * taps + i] * s.x[r * taps + i];
        for (size_t j = 0; j < taps; ++j) gram[i][j] += s.x[r * taps + i] * s.x[r * taps + j];
      }
    for (size_t i = 0; i < taps; ++i) gram[i][i] += ridge * trace / double(taps);
    return plain_solve(gram, right);
  };
  if (first) {
    const std::vector<double> a = solve_linear();
    std::copy(a.begin(), a.end(), w.begin());
  }
  const auto cost = [&](const std::vector<double>& at) {
    double sum = 0;
    for (size_t r = 0; r < rows; ++r)
      sum += std::pow(s.y[r] - plain_value(at, &s.x[r * taps], taps, units), 2);
    for (size_t k = taps; k < n; ++k) sum += pull * at[k] * at[k];
    return sum;
  };
  double best = cost(w), damping = 1e-3;
  for (int step = 0; step < 6; ++step) {
    std::vector<std::vector<double>> normal(n, std::vector<double>(n));
    std::vector<double> right(n);
    for (size_t r = 0; r < rows; ++r) {
      std::vector<double> slope(n);
      for (size_t k = 0; k < n; ++k) {
        std::vector<Complex> moved(w.begin(), w.end());
        moved[k] += Complex(0, 1e-30);
        slope[k] = plain_value(moved, &s.x[r * taps], taps, units).imag() / 1e-30;
      }
      const double miss = s.y[r] - plain_value(w, &s.x[r * taps], taps, units);
      for (size_t i = 0; i < n; ++i) {
        right[i] += slope[i] * miss;
        for (size_t j = 0; j < n; ++j) normal[i][j] += slope[i] * slope[j];
      }
    }
    for (size_t k = taps; k < n; ++k) normal[k][k] += pull, right[k] -= pull * w[k];
    for (size_t k = 0; k < n; ++k) normal[k][k] += damping * (normal[k][k] + 1e-12);
    const std::vector<double> move = plain_solve(normal, right);
    std::vector<double> next = w;
    for (size_t k = 0; k < n; ++k) next[k] += move[k];
    if (cost(next) < best)
      best = cost(next), w = next, damping /= 5;
    else
      damping *= 10;
  }
  return w;
}

TEST(Network, FitsAsAPlainOne) {
  constexpr double kRidge = 1e-3;
  DirectionNetwork network(2, 3, kRidge);
  std::vector<double> plain = network.weights();
  EXPECT_EQ(plain.size(), 14u);
  for (const uint32_t fit : {0u, 1u}) {
    const Samples s = samples_of(60, 5 + fit);
    plain = plain_fit(plain, s, 2, 3, kRidge, fit == 0);
    const double explained = network.fit(s.x, s.y);
    double whole = 0, missed = 0;
    for (size_t r = 0; r < s.y.size(); ++r) {
      whole += s.y[r] * s.y[r];
      missed += std::pow(s.y[r] - plain_value(plain, &s.x[2 * r], 2, 3), 2);
      EXPECT_NEAR(network.value(std::span(s.x).subspan(2 * r, 2)), plain_value(plain, &s.x[2 * r], 2, 3),
                  1e-8);
    }
    EXPECT_NEAR(explained, 1 - missed / whole, 1e-8);
    EXPECT_GT(explained, 0.98);
    for (size_t k = 0; k < plain.size(); ++k) EXPECT_NEAR(network.weights()[k], plain[k], 1e-6) << k;
  }
}

TEST(Network, GoesOnFromItsState) {
  const Samples first = samples_of(40, 1), second = samples_of(40, 2);
  DirectionNetwork whole(2, 4, 1e-4), part(2, 4, 1e-4), anew(2, 4, 1e-4);
  whole.fit(first.x, first.y);
  part.restore(whole.state());
  EXPECT_EQ(whole.fit(second.x, second.y), part.fit(second.x, second.y));
  EXPECT_EQ(whole.state(), part.state());
  anew.fit(second.x, second.y);
  EXPECT_NE(anew.weights(), whole.weights());
  EXPECT_EQ(DirectionNetwork(2, 4, 1e-4).state(), DirectionNetwork(2, 4, 1e-4).state());
}

TEST(Network, NothingToLearnLeavesItFinite) {
  for (const size_t rows : {size_t(0), size_t(5)}) {
    DirectionNetwork network(1, 2, 0);
    const std::vector<double> zeros(rows, 0.0);
    EXPECT_EQ(network.fit(zeros, zeros), 0);
    for (const double w : network.weights()) EXPECT_TRUE(std::isfinite(w));
  }
}

TEST(Network, StartsAtNormalQuantilesOfHaltonsPoints) {
  // Points 1 to 3 in bases 2, 3 and 5: 1/2 1/4 3/4, 1/3 2/3 1/9, 1/5 2/5 3/5; quantiles from a table of the normal.
  const std::vector<double> expected{0,         0,  // a
                                     0,         -0.430727, -0.674490,
                                     0.430727,  0.674490,  -1.220640,  // B, by units
                                     -0.841621, -0.253347, 0.253347,   // b
                                     0,         0,         0};         // v
  const DirectionNetwork network(2, 3, 1e-4);
  ASSERT_EQ(network.weights().size(), expected.size());
  for (size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(network.weights()[k], expected[k], 1e-6) << k;
  EXPECT_EQ(network.value(std::vector<double>{0.3, -2}), 0);
}

}  // namespace
}  // namespace lockstep::forecast
