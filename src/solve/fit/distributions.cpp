#include "solve/fit/distributions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace lockstep::solve {
namespace {

constexpr double kSmall = 1e-300, kPrecision = 1e-16;
constexpr int kMostTerms = 100'000;

/// A continued fraction by Lentz's rule: b0 + a1 / (b1 + a2 / (b2 + …)); `next(n)` gives (a, b) of term n.
template <class Next>
double continued_fraction(double b0, const Next& next) {
  double f = b0 == 0 ? kSmall : b0, c = f, d = 0;
  for (int n = 1; n < kMostTerms; ++n) {
    const auto [a, b] = next(n);
    d = b + a * d, c = b + a / c;
    d = 1 / (d == 0 ? kSmall : d), c = c == 0 ? kSmall : c;
    f *= c * d;
    if (std::abs(c * d - 1) <= 2 * kPrecision) break;
  }
  return f;
}

struct Term {
  double a, b;
};

/// Regularised incomplete beta function I_x(a, b).
double incomplete_beta(double x, double a, double b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(1 - x, b, a);
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  const double f = continued_fraction(1, [&](int n) {
    const double m = n / 2;  // NOLINT: whole
    if (n % 2) return Term{-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1};
    return Term{m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1};
  });
  return front / (a * f);
}

}  // namespace

double chi_squared_tail(double x, double k) {
  const double a = k / 2, y = x / 2;
  if (!(y > 0)) return 1;
  if (std::isinf(y)) return 0;
  const double front = std::exp(a * std::log(y) - y - std::lgamma(a));
  if (y < a + 1) {  // the lower part as a series
    double term = 1 / a, sum = term;
    for (int n = 1; n < kMostTerms && term > kPrecision * sum; ++n) sum += term *= y / (a + n);
    return 1 - front * sum;
  }
  return front / continued_fraction(y + 1 - a, [&](int n) { return Term{-n * (n - a), y + 2 * n + 1 - a}; });
}

double fisher_tail(double x, double k1, double k2) {
  return incomplete_beta(k2 / (k2 + k1 * std::max(x, 0.0)), k2 / 2, k1 / 2);
}

double normal_two_sided(double z) { return std::erfc(std::abs(z) / std::numbers::sqrt2); }

double student_probability(double t, double freedom) {
  const double tail = std::isinf(freedom)
                          ? normal_two_sided(t) / 2
                          : incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double freedom) {
  if (p > 0.5) return -student_quantile(1 - p, freedom);
  double low = -1, high = 0;
  while (student_probability(low, freedom) > p && low > -1e300) high = low, low *= 2;
  for (int n = 0; n < 200 && high - low > 4e-16 * std::abs(low); ++n) {
    const double middle = 0.5 * (low + high);
    (student_probability(middle, freedom) > p ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace lockstep::solve
