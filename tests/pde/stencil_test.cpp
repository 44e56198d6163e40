#include "pde/language/stencil.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "lockstep/error.hpp"

namespace lockstep::pde {
namespace {

/// A row of the operator as the kernels see it: special rows where there is one, else the interior taps.
std::vector<double> row_of(const AxisOperator& op, bool transposed, int64_t n, int64_t i) {
  const auto& rows = transposed ? op.rows_t : op.rows;
  std::vector<double> row(size_t(n), 0.0);
  const auto put = [&](const std::vector<Tap>& taps) {
    for (const Tap& t : taps) {
      int64_t k = i + t.offset;
      if (op.periodic) k = ((k % n) + n) % n;
      EXPECT_TRUE(k >= 0 && k < n) << "row " << i << " of " << n << " offset " << t.offset;
      if (k >= 0 && k < n) row[size_t(k)] += t.weight;
    }
  };
  for (const Row& r : rows)
    if ((r.high ? n - 1 - r.at : r.at) == i) {
      put(r.taps);
      return row;
    }
  put(transposed ? op.taps_t : op.taps);
  return row;
}

std::vector<Side> sides() {
  return {{Rule::clamp, 0},       {Rule::reflect_odd, 0}, {Rule::dirichlet_face, 0.5}, {Rule::ghost, 2},
          {Rule::node_mirror, 0}, {Rule::one_sided1, 0},  {Rule::one_sided2, 0}};
}

TEST(Stencil, RowsAndColumnsAreOneMatrix) {
  for (Stencil kind : {Stencil::first, Stencil::second, Stencil::forward, Stencil::backward})
    for (int order : {2, 4, 6, 8})
      for (const Side& low : sides())
        for (const Side& high : sides())
          for (int64_t n : {5, 6, 7, 9, 13, 21, 22, 23, 40}) {
            const AxisOperator op = make_operator(kind, order, low, high, n, "x", true);
            for (int64_t i = 0; i < n; ++i) {
              const std::vector<double> row = row_of(op, false, n, i);
              EXPECT_EQ(row, dense_row(kind, order, low, high, n, i, nullptr))
                  << "kind " << int(kind) << " order " << order << " n " << n << " row " << i;
              for (int64_t k = 0; k < n; ++k)
                if (std::abs(i - k) <= 9) {
                  EXPECT_EQ(row_of(op, true, n, k)[size_t(i)], row[size_t(k)])
                      << "order " << order << " n " << n << " at " << i << ", " << k;
                }
            }
          }
}

// The ghost rules of the adjoint in closed form, order 2: (D^T g)_j = (g[j-1] - g[j+1]) / 2h with changed
// ghosts.
TEST(Stencil, TransposedRowsFollowTheGhostRules) {
  constexpr int64_t n = 9;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> range(-1, 1);
  std::vector<double> g(n);
  for (double& v : g) v = range(random);
  struct Case {
    Side side;
    double first;  // factor of g[0] before the rule
    double ghost;  // g[-1] = ghost * g[0]
    bool extra;    // one_sided2: (-3, 3, -1) g[0] on rows 0, 1, 2
  };
  const Case cases[] = {{{Rule::clamp, 0}, 1, -1, false},         {{Rule::reflect_odd, 0}, 1, 1, false},
                        {{Rule::dirichlet_face, 1}, 1, 1, false}, {{Rule::ghost, 1}, 1, 0, false},
                        {{Rule::node_mirror, 0}, 0, 0, false},    {{Rule::one_sided1, 0}, 2, -1, false},
                        {{Rule::one_sided2, 0}, 1, 0, true}};
  for (const Case& c : cases) {
    const AxisOperator op = make_operator(Stencil::first, 2, c.side, c.side, n, "x", true);
    std::vector<double> h = g;
    h.front() *= c.first;
    h.back() *= c.first;
    for (int64_t j = 0; j < n; ++j) {
      const double below = j > 0 ? h[size_t(j - 1)] : c.ghost * h[0],
                   above = j < n - 1 ? h[size_t(j + 1)] : c.ghost * h[n - 1];
      double expected = below - above;
      if (c.extra) {
        const double low[] = {-3, 3, -1};
        if (j < 3) expected += low[j] * g[0];
        if (n - 1 - j < 3) expected -= low[n - 1 - j] * g[n - 1];
      }
      double got = 0;
      const std::vector<double> row = row_of(op, true, n, j);
      for (int64_t i = 0; i < n; ++i) got += row[size_t(i)] * g[size_t(i)];
      EXPECT_NEAR(got, expected, 1e-14) << "rule " << int(c.side.rule) << " row " << j;
    }
  }
}

// Functions of all whole numbers that each rule continues beyond its ends: rows near an end give what the interior's weights
// give of the function.
TEST(Stencil, RulesContinueTheirFunctions) {
  constexpr int64_t n = 23;
  constexpr double pi = std::numbers::pi;
  struct Case {
    Side side;
    std::function<double(double)> u;
  };
  const Case cases[] = {
      {{Rule::clamp, 0}, [](double x) { return std::cos(3 * pi * (x + 0.5) / n); }},
      {{Rule::reflect_even, 0}, [](double x) { return std::cos(2 * pi * (x + 0.5) / n); }},
      {{Rule::reflect_odd, 0}, [](double x) { return std::sin(2 * pi * (x + 0.5) / n); }},
      {{Rule::dirichlet_face, 0.7}, [](double x) { return 0.7 + std::sin(3 * pi * (x + 0.5) / n); }},
      {{Rule::ghost, -1.5}, [](double x) { return x < 0 || x > n - 1 ? -1.5 : std::sin(x); }},
      {{Rule::node_mirror, 0}, [](double x) { return std::cos(3 * pi * x / (n - 1)); }},
      {{Rule::one_sided1, 0}, [](double x) { return 2 - 0.3 * x; }},
      {{Rule::one_sided2, 0}, [](double x) { return 1 + 0.2 * x - 0.03 * x * x; }},
      {{Rule::periodic, 0}, [](double x) { return std::sin(2 * pi * x / n); }}};
  for (const Case& c : cases)
    for (const Stencil kind : {Stencil::first, Stencil::second, Stencil::forward, Stencil::backward})
      for (const int order : {2, 4, 6, 8}) {
        const AxisOperator op = make_operator(kind, order, c.side, c.side, n, "x", true);
        for (int64_t i = 0; i < n; ++i) {
          double constant = 0, expected = 0;
          const std::vector<double> row = dense_row(kind, order, c.side, c.side, n, i, &constant);
          for (const Tap& t : op.taps) expected += t.weight * c.u(double(i + t.offset));
          for (int64_t k = 0; k < n; ++k) constant += row[size_t(k)] * c.u(double(k));
          EXPECT_NEAR(constant, expected, 1e-13)
              << "rule " << int(c.side.rule) << " kind " << int(kind) << " order " << order << " row " << i;
        }
      }
}

TEST(Stencil, OrdersOfAccuracy) {
  for (Stencil kind : {Stencil::first, Stencil::second})
    for (int order : {2, 4, 6, 8}) {
      const AxisOperator op =
          make_operator(kind, order, {Rule::periodic, 0}, {Rule::periodic, 0}, 64, "x", true);
      const auto error = [&](double h) {
        double sum = 0;
        for (const Tap& t : op.taps) sum += t.weight * std::sin(0.3 + t.offset * h);
        const double exact = kind == Stencil::first ? std::cos(0.3) : -std::sin(0.3);
        return std::abs(sum * operator_scale(kind, order, h) - exact);
      };
      EXPECT_NEAR(std::log2(error(0.4) / error(0.2)), order, 0.15) << int(kind) << " order " << order;
    }
}

TEST(Stencil, RefusesGridsThatAreTooSmall) {
  const Side clamp{Rule::clamp, 0}, mirror{Rule::node_mirror, 0}, one{Rule::one_sided1, 0},
      two{Rule::one_sided2, 0}, periodic{Rule::periodic, 0};
  EXPECT_THROW(make_operator(Stencil::first, 2, two, two, 2, "x", true), InputError);
  EXPECT_THROW(make_operator(Stencil::first, 2, one, one, 1, "x", true), InputError);
  EXPECT_THROW(make_operator(Stencil::first, 2, mirror, mirror, 1, "x", true), InputError);
  EXPECT_THROW(make_operator(Stencil::first, 3, clamp, clamp, 9, "x", true), InputError);
  EXPECT_NO_THROW(make_operator(Stencil::first, 2, clamp, clamp, 1, "x", true));
  EXPECT_NO_THROW(make_operator(Stencil::first, 8, periodic, periodic, 1, "x", false));
  EXPECT_TRUE(dense_row(Stencil::first, 8, periodic, periodic, 1, 0, nullptr)[0] == 0);
}

}  // namespace
}  // namespace lockstep::pde
