#include "solve/fit/residual_tests.hpp"

#include <algorithm>
#include <cmath>

#include "solve/fit/distributions.hpp"

namespace lockstep::solve {
namespace {

/// Wald and Wolfowitz 1940: runs of equal signs, of all data sets together.
void test_runs(std::span<const double> residuals, std::span<const size_t> rows, std::span<const size_t> order,
               FitResidualTests& out) {
  double variance = 0;
  size_t first = 0;
  for (const size_t count : rows) {
    double positive = 0, negative = 0;
    bool before = false;
    for (const size_t row : order.subspan(first, count)) {
      const double r = residuals[row];
      if (r == 0) continue;
      if (positive + negative == 0 || before != (r > 0)) ++out.runs;
      before = r > 0;
      ++(before ? positive : negative);
    }
    first += count;
    const double n = positive + negative, twice = 2 * positive * negative;
    if (n < 2) continue;
    out.runs_expected += 1 + twice / n;
    variance += twice * (twice - n) / (n * n * (n - 1));
  }
  if (variance > 0)
    out.runs_probability = normal_two_sided((double(out.runs) - out.runs_expected) / std::sqrt(variance));
}

/// D'Agostino and Pearson 1973: skewness (D'Agostino 1970) and kurtosis (Anscombe and Glynn 1983) as normal numbers, the sum of
/// their squares as chi squared with two degrees of freedom.
void test_normality(std::span<const double> residuals, FitResidualTests& out) {
  constexpr size_t kFewest = 20;  // below, the kurtosis is far from normal
  if (residuals.size() < kFewest) return;
  const auto n = double(residuals.size());
  double mean = 0, m2 = 0, m3 = 0, m4 = 0, unit = 0;  // unit: powers of it neither overflow nor vanish
  for (const double r : residuals) mean += r / n;
  for (const double r : residuals) unit = std::max(unit, std::abs(r - mean));
  for (const double r : residuals) {
    const double d = unit > 0 ? (r - mean) / unit : 0;
    m2 += d * d / n, m3 += d * d * d / n, m4 += d * d * d * d / n;
  }
  if (!(m2 > 0)) return;
  const double skew = m3 / (m2 * std::sqrt(m2)), kurtosis = m4 / (m2 * m2);
  const double y = skew * std::sqrt((n + 1) * (n + 3) / (6 * (n - 2)));
  const double beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9));
  const double w2 = std::sqrt(2 * (beta - 1)) - 1;
  const double of_skew = std::asinh(y / std::sqrt(2 / (w2 - 1))) / std::sqrt(0.5 * std::log(w2));
  const double off = (kurtosis - 3 * (n - 1) / (n + 1)) /
                     std::sqrt(24 * n * (n - 2) * (n - 3) / ((n + 1) * (n + 1) * (n + 3) * (n + 5)));
  const double third = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) *
                       std::sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)));
  const double a = 6 + 8 / third * (2 / third + std::sqrt(1 + 4 / (third * third)));
  const double scaled = 1 + off * std::sqrt(2 / (a - 4));
  const double of_kurtosis = (1 - 2 / (9 * a) - std::cbrt((1 - 2 / a) / scaled)) / std::sqrt(2 / (9 * a));
  out.normality = of_skew * of_skew + of_kurtosis * of_kurtosis;
  out.normality_probability = std::exp(-0.5 * *out.normality);
}

}  // namespace

FitResidualTests residual_tests(std::span<const double> residuals, std::span<const size_t> rows,
                                std::span<const size_t> order, size_t parameters) {
  FitResidualTests out;
  test_runs(residuals, rows, order, out);
  test_normality(residuals, out);
  double squares = 0;
  for (const double r : residuals) squares += r * r;
  const auto n = double(residuals.size()), p = double(parameters);
  if (squares > 0) {
    out.akaike = n * std::log(squares / n) + 2 * p;
    out.bayes = n * std::log(squares / n) + std::log(n) * p;
  }
  return out;
}

}  // namespace lockstep::solve
