#include "forecast/predict/jump/network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "forecast/predict/jump/fit.hpp"

namespace lockstep::forecast {
namespace {

constexpr int kSteps = 6;
constexpr double kDamping = 1e-3, kPullShare = 1e-3;

/// Number `count` from 1 of Halton's sequence to a base.
double halton(int count, int base) {
  double sum = 0, share = 1;
  for (; count > 0; count /= base) sum += (share /= base) * (count % base);
  return sum;
}

/// The number below which a standard normal variable lies with this probability.
double normal_quantile(double probability) {
  double low = -9, high = 9;
  for (int k = 0; k < 60; ++k) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) < 2 * probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

constexpr std::array<int, 8> kBases{2, 3, 5, 7, 11, 13, 17, 19};  // for up to seven taps and the offset

}  // namespace

struct DirectionNetwork::Rows {
  std::span<const double> x, y;
  size_t taps;
  size_t count() const { return y.size(); }
  std::span<const double> at(size_t row) const { return x.subspan(row * taps, taps); }
};

DirectionNetwork::DirectionNetwork(int taps, int units, double ridge)
    : taps_(taps), units_(units), ridge_(ridge), w_(size_t(taps + units * (taps + 2)), 0.0) {
  for (int u = 0; u < units; ++u)
    for (int j = 0; j <= taps; ++j)
      w_[size_t(j < taps ? taps + u * taps + j : taps + units * taps + u)] =
          normal_quantile(halton(u + 1, kBases[size_t(j)]));
}

double DirectionNetwork::value(std::span<const double> x) const {
  const auto t = size_t(taps_), u = size_t(units_);
  const double *inner = w_.data() + t, *offset = inner + u * t, *factor = offset + u;
  double sum = 0;
  for (size_t j = 0; j < t; ++j) sum += w_[j] * x[j];
  for (size_t k = 0; k < u; ++k) {
    double before = offset[k];
    for (size_t j = 0; j < t; ++j) before += inner[k * t + j] * x[j];
    sum += factor[k] * std::tanh(before);
  }
  return sum;
}

double DirectionNetwork::squares(const Rows& rows) const {
  double sum = 0;
  for (size_t r = 0; r < rows.count(); ++r) {
    const double miss = rows.y[r] - value(rows.at(r));
    sum += miss * miss;
  }
  return sum;
}

double DirectionNetwork::cost(const Rows& rows) const {
  double weights = 0;
  for (size_t k = size_t(taps_); k < w_.size(); ++k) weights += w_[k] * w_[k];
  return squares(rows) + kPullShare * ridge_ * double(rows.count()) * weights;
}

void DirectionNetwork::begin(const Rows& rows) {
  const size_t t = rows.taps;
  std::vector<double> gram(t * t, 0.0), products(t, 0.0);
  double trace = 0;
  for (size_t r = 0; r < rows.count(); ++r) {
    const auto x = rows.at(r);
    for (size_t i = 0; i < t; ++i) {
      products[i] += x[i] * rows.y[r];
      for (size_t j = 0; j < t; ++j) gram[i * t + j] += x[i] * x[j];
    }
  }
  for (size_t i = 0; i < t; ++i) trace += gram[i * t + i];
  const std::vector<double> a = solve_ridge(gram, products, ridge_ * trace / double(t) + 1e-300);
  std::copy(a.begin(), a.end(), w_.begin());
  fitted_ = true;
}

/// The step of Gauss and Newton with the diagonal raised by the share `damping`.
std::vector<double> DirectionNetwork::step(const Rows& rows, double damping) const {
  const auto t = size_t(taps_), u = size_t(units_), n = w_.size();
  const double *inner = w_.data() + t, *offset = inner + u * t, *factor = offset + u;
  std::vector<double> normal(n * n, 0.0), right(n, 0.0), slope(n);
  for (size_t r = 0; r < rows.count(); ++r) {
    const auto x = rows.at(r);
    double miss = rows.y[r];
    for (size_t j = 0; j < t; ++j) slope[j] = x[j], miss -= w_[j] * x[j];
    for (size_t k = 0; k < u; ++k) {
      double before = offset[k];
      for (size_t j = 0; j < t; ++j) before += inner[k * t + j] * x[j];
      const double h = std::tanh(before), down = (1 - h * h) * factor[k];
      for (size_t j = 0; j < t; ++j) slope[t + k * t + j] = down * x[j];
      slope[t + u * t + k] = down, slope[t + u * t + u + k] = h;
      miss -= factor[k] * h;
    }
    for (size_t i = 0; i < n; ++i) {
      right[i] += slope[i] * miss;
      for (size_t j = 0; j <= i; ++j) normal[i * n + j] += slope[i] * slope[j];
    }
  }
  const double pull = kPullShare * ridge_ * double(rows.count());
  for (size_t i = 0; i < n; ++i) {
    if (i >= t) right[i] -= pull * w_[i], normal[i * n + i] += pull;
    normal[i * n + i] += damping * (normal[i * n + i] + 1e-12);
    for (size_t j = 0; j < i; ++j) normal[j * n + i] = normal[i * n + j];
  }
  return solve_ridge(std::move(normal), std::move(right), 0);
}

double DirectionNetwork::fit(std::span<const double> x, std::span<const double> y) {
  const Rows rows{x, y, size_t(taps_)};
  if (!fitted_) begin(rows);
  double best = cost(rows), damping = kDamping;
  for (int s = 0; s < kSteps; ++s) {
    const std::vector<double> kept = w_, move = step(rows, damping);
    for (size_t k = 0; k < w_.size(); ++k) w_[k] += move[k];
    const double now = cost(rows);
    if (now < best) {
      best = now, damping /= 5;
    } else {
      w_ = kept, damping *= 10;
    }
  }
  double whole = 0;
  for (const double v : y) whole += v * v;
  return whole > 0 ? std::clamp(1 - squares(rows) / whole, 0.0, 1.0) : 0;
}

std::vector<double> DirectionNetwork::state() const {
  std::vector<double> state = w_;
  state.push_back(fitted_ ? 1 : 0);
  return state;
}

void DirectionNetwork::restore(std::span<const double> state) {
  w_.assign(state.begin(), state.end() - 1);
  fitted_ = state.back() != 0;
}

double network_value_work(int taps, int units) { return taps + double(units) * (taps + 1 + 20); }

double network_fit_work(int taps, int units, double rows) {
  const double n = taps + double(units) * (taps + 2);
  return kSteps * (rows * (n * (n + 1) / 2 + 2 * network_value_work(taps, units)) + n * n * n / 6);
}

}  // namespace lockstep::forecast
