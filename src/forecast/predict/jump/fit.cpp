#include "forecast/predict/jump/fit.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::forecast {

std::vector<double> solve_ridge(std::vector<double> a, std::vector<double> b, double shift) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) a[i * n + i] += shift;
  // Cholesky, in place below the diagonal.
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < j; ++k) a[j * n + j] -= a[j * n + k] * a[j * n + k];
    if (!(a[j * n + j] > 0) || !std::isfinite(a[j * n + j])) return std::vector<double>(n, 0.0);
    a[j * n + j] = std::sqrt(a[j * n + j]);
    for (size_t i = j + 1; i < n; ++i) {
      for (size_t k = 0; k < j; ++k) a[i * n + j] -= a[i * n + k] * a[j * n + k];
      a[i * n + j] /= a[j * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return b;
}

double growth_of(std::span<const double> coefficients) {
  const size_t p = coefficients.size();
  if (p == 0) return 0;
  std::vector<double> c(p * p, 0.0), square(p * p);
  for (size_t j = 0; j < p; ++j) c[j] = coefficients[j];
  for (size_t i = 1; i < p; ++i) c[i * p + i - 1] = 1;
  // rho = lim |C^(2^k)|^(1 / 2^k); the norm is taken out before each squaring.
  double logarithm = 0, share = 1;
  for (int round = 0; round < 24; ++round) {
    double norm = 0;
    for (const double x : c) norm += x * x;
    norm = std::sqrt(norm);
    if (!(norm > 0)) return 0;
    logarithm += share * std::log(norm);
    share /= 2;
    for (double& x : c) x /= norm;
    for (size_t i = 0; i < p; ++i)
      for (size_t j = 0; j < p; ++j) {
        double sum = 0;
        for (size_t k = 0; k < p; ++k) sum += c[i * p + k] * c[k * p + j];
        square[i * p + j] = sum;
      }
    std::swap(c, square);
  }
  return std::exp(logarithm);
}

PathFit fit_path(std::span<const double> gram, int count, int order, double ridge, double max_growth) {
  const auto g = [&](int i, int j) { return gram[size_t(i) * size_t(count) + size_t(j)]; };
  if (count < 1 || !(g(0, 0) > 0)) return {};
  if (count == 1) return {{1.0}, 0.0};
  const int p = std::clamp(order, 1, count - 1);
  std::vector<double> a(size_t(p) * size_t(p)), b(size_t(p), 0.0);
  double energy = 0, trace = 0;
  for (int i = 0; i + p < count; ++i) {
    energy += g(i, i);
    for (int r = 0; r < p; ++r) {
      b[size_t(r)] += g(i, i + r + 1);
      for (int s = 0; s < p; ++s) a[size_t(r) * size_t(p) + size_t(s)] += g(i + r + 1, i + s + 1);
    }
  }
  for (int r = 0; r < p; ++r) trace += a[size_t(r) * size_t(p + 1)];
  PathFit fit{solve_ridge(a, b, ridge * trace / p), 0};
  double fitted = 0;
  for (int r = 0; r < p; ++r) {
    fitted += 2 * fit.coefficients[size_t(r)] * b[size_t(r)];
    for (int s = 0; s < p; ++s)
      fitted -=
          fit.coefficients[size_t(r)] * a[size_t(r) * size_t(p) + size_t(s)] * fit.coefficients[size_t(s)];
  }
  fit.explained = energy > 0 ? std::clamp(fitted / energy, 0.0, 1.0) : 0;
  // c_j q^j moves every eigenvalue by the factor q.
  const double growth = growth_of(fit.coefficients);
  if (growth > max_growth) {
    double factor = 1;
    for (double& c : fit.coefficients) c *= factor *= max_growth / growth;
  }
  return fit;
}

std::vector<double> extrapolate(const PathFit& fit, int count, double intervals) {
  const size_t p = fit.coefficients.size();
  std::vector<double> sum(size_t(count), 0.0);
  if (p == 0 || !(intervals > 0)) return sum;
  // The last p differences as combinations of the known ones, newest first; at first each is itself.
  std::vector<std::vector<double>> last(p, std::vector<double>(p, 0.0));
  for (size_t j = 0; j < p; ++j) last[j][j] = 1;
  for (double left = intervals; left > 0; left -= 1) {
    std::vector<double> next(p, 0.0);
    for (size_t j = 0; j < p; ++j)
      for (size_t k = 0; k < p; ++k) next[k] += fit.coefficients[j] * last[j][k];
    for (size_t k = 0; k < p; ++k) sum[k] += std::min(left, 1.0) * next[k];
    last.insert(last.begin(), std::move(next));
    last.pop_back();
  }
  return sum;
}

}  // namespace lockstep::forecast
