#include "forecast/encoder/reference.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::forecast::reference {
namespace {

using Series = std::vector<double>;

Series last(const Series& s, size_t count) {
  return {s.end() - ptrdiff_t(std::min(count, s.size())), s.end()};
}

double mean_of(const Series& s) {
  double sum = 0;
  for (const double v : s) sum += v;
  return sum / double(s.size());
}

double deviation_of(const Series& s) {
  const double m = mean_of(s);
  double sum = 0;
  for (const double v : s) sum += (v - m) * (v - m);
  return std::sqrt(sum / double(s.size()));
}

double log_of(double x) { return std::log10(std::max(x, 1e-10)); }

double ema_of(const Series& s, double weight) {
  double average = s.front();
  for (size_t k = 1; k < s.size(); ++k) average += weight * (s[k] - average);
  return average;
}

/// Least-squares slope by the row number.
double slope_of(const Series& s) {
  const double n = double(s.size()), centre = (n - 1) / 2, m = mean_of(s);
  double xy = 0, xx = 0;
  for (size_t k = 0; k < s.size(); ++k) {
    xy += (double(k) - centre) * (s[k] - m);
    xx += (double(k) - centre) * (double(k) - centre);
  }
  return xx > 0 ? xy / xx : 0;
}

double curvature_of(const Series& s) {
  const auto third = ptrdiff_t(s.size() / 3);
  if (third == 0) return 0;
  const auto end = s.end();
  const double a = mean_of({end - third, end}), b = mean_of({end - 2 * third, end - third}),
               c = mean_of({end - 3 * third, end - 2 * third});
  return (a - 2 * b + c) / std::max(std::abs((a + b + c) / 3), 1e-8);
}

double correlation_of(const Series& x, const Series& y) {
  const double mx = mean_of(x), my = mean_of(y);
  double xy = 0, xx = 0, yy = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    xy += (x[k] - mx) * (y[k] - my);
    xx += (x[k] - mx) * (x[k] - mx);
    yy += (y[k] - my) * (y[k] - my);
  }
  return xy / std::max(std::sqrt(xx * yy), 1e-20);
}

double over(double a, double b) { return a / std::max(std::abs(b), 1e-8); }

/// The features in their order; the parts below add theirs one after the other.
struct Features {
  const std::vector<std::vector<double>>& signals;
  std::array<double, kFeatures> f{};
  size_t next = 0;

  const Series& all(Signal s) const { return signals[size_t(s)]; }
  double now(Signal s) const { return all(s).back(); }
  void put(double v) { f[next++] = v; }

  void present();
  void averages();
  void trends();
  void groups();
};

void Features::present() {
  const Series &loss = all(Signal::loss), &grad = all(Signal::grad_norm);
  const size_t n = loss.size();
  const Series loss256 = last(loss, 256), grad64 = last(grad, 64);
  put(loss.back());
  put(mean_of(loss256));
  put(deviation_of(loss256));
  put(*std::min_element(loss256.begin(), loss256.end()));
  put(*std::max_element(loss256.begin(), loss256.end()));
  const Series loss32 = last(loss, 32);
  const double recent = mean_of(last(loss, 16));
  const double before = n < 32 ? 0 : mean_of({loss32.begin(), loss32.begin() + 16});
  put(n < 32 ? 0 : recent - before);
  put(n < 32 ? 1 : recent / std::max(before, 1e-8));
  put(now(Signal::step) / 10000);
  const double grad_mean = mean_of(grad64), grad_max = *std::max_element(grad64.begin(), grad64.end());
  put(grad.back());
  put(grad_mean);
  put(deviation_of(grad64));
  put(*std::min_element(grad64.begin(), grad64.end()));
  put(grad_max);
  put(log_of(grad.back()));
  put(std::min(grad.back() / std::max(grad_mean, 1e-8), 10.0));
  put(deviation_of(grad64) / std::max(grad_mean, 1e-8));
  for (const Signal s : {Signal::m_mean, Signal::m_std, Signal::v_mean, Signal::v_std}) put(now(s));
  put(log_of(now(Signal::lr)));
  put(now(Signal::beta1_t));
  put(now(Signal::beta2_t));
  put(log_of(now(Signal::update_norm) / std::max(now(Signal::param_norm), 1e-8)));
  put(now(Signal::phase));
  put(now(Signal::phase_step) / 100);
}

void Features::averages() {
  const Series &loss = all(Signal::loss), &grad = all(Signal::grad_norm);
  const double weights[4] = {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256};
  for (const double w : weights) put(ema_of(loss, w));
  for (int k = 0; k < 3; ++k) {
    const double slower = ema_of(loss, weights[k + 1]);
    put(over(ema_of(loss, weights[k]) - slower, slower));
  }
  for (const double w : weights) put(log_of(ema_of(grad, w)));
  for (const size_t w : {8, 32, 128, 512}) {
    const Series part = last(loss, w);
    put(over(slope_of(part) * double(part.size()), mean_of(part)));
  }
  for (const size_t w : {32, 128, 512}) put(curvature_of(last(loss, w)));
  for (const size_t w : {size_t(16), size_t(64), loss.size()})
    put(over(deviation_of(last(loss, w)), mean_of(last(loss, w))));
}

void Features::trends() {
  const Series &loss = all(Signal::loss), &grad = all(Signal::grad_norm);
  const size_t n = loss.size();
  const Series grad64 = last(grad, 64);
  Series changes;
  for (size_t k = 1; k < n; ++k) changes.push_back(loss[k] - loss[k - 1]);
  double pairs = 0, squares = 0, falls = 0;
  for (size_t k = 0; k < changes.size(); ++k) {
    squares += changes[k] * changes[k];
    if (k > 0) pairs += changes[k] * changes[k - 1];
  }
  const Series changes64 = last(changes, 64);
  for (const double d : changes64) falls += d < 0;
  put(pairs / std::max(squares, 1e-30));
  put(changes64.empty() ? 0 : falls / double(changes64.size()));
  const double best = *std::min_element(loss.begin(), loss.end());
  size_t age = 0;
  while (loss[n - 1 - age] != best) ++age;
  put(double(age) / double(n));
  put(over(loss.back() - best, best));
  Series logs;
  for (const double g : last(grad, 128)) logs.push_back(log_of(g));
  put(slope_of(logs) * double(logs.size()));
  put(log_of(*std::max_element(grad64.begin(), grad64.end()) / std::max(mean_of(grad64), 1e-8)));
  put(correlation_of(last(loss, 128), last(grad, 128)));
  put(log_of(now(Signal::grad_var) / std::max(grad.back() * grad.back(), 1e-16)));
}

void Features::groups() {
  put(log_of(now(Signal::update_norm)));
  put(log_of(now(Signal::param_norm)));
  Series cosines;
  double group_squares = 0, greatest = 0;
  for (int k = 0; k < kParameterGroups; ++k) {
    const Series& align = signals[size_t(Signal::align_0) + size_t(k)];
    put(ema_of(align, 1.0 / 16));
    cosines.push_back(align.back());
    const double norm = signals[size_t(Signal::grad_norm_0) + size_t(k)].back();
    group_squares += norm * norm;
    greatest = std::max(greatest, norm * norm);
  }
  put(deviation_of(cosines));
  put(log_of(now(Signal::lr) / std::max(mean_of(last(all(Signal::lr), 256)), 1e-30)));
  put(greatest / std::max(group_squares, 1e-30));
}

}  // namespace

std::array<double, kFeatures> encode(const std::vector<std::vector<double>>& signals) {
  Features features{signals};
  features.present();
  features.averages();
  features.trends();
  features.groups();
  return features.f;
}

std::vector<std::array<double, kFeatures>> normalise(
    const std::vector<std::array<double, kFeatures>>& states) {
  std::vector<std::array<double, kFeatures>> result = states;
  for (size_t f = 0; f < kFeatures; ++f)
    for (size_t s = 0; s < states.size(); ++s) {
      Series seen;
      for (size_t k = 0; k <= s; ++k) seen.push_back(states[k][f]);
      const double deviation = deviation_of(seen);
      result[s][f] = (states[s][f] - mean_of(seen)) / std::sqrt(deviation * deviation + 1e-8);
    }
  return result;
}

}  // namespace lockstep::forecast::reference
