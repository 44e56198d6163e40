#include "forecast/predict/policy/bandit.hpp"

#include <algorithm>
#include <cmath>

#include "forecast/predict/jump/fit.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {

LinearBandit::LinearBandit(int arms, int features, double exploration)
    : arms_(arms), features_(features), exploration_(exploration) {
  const size_t d = size_t(features);
  numbers_.assign(size_t(arms) * (d + 1) * d, 0.0);
  for (size_t a = 0; a < size_t(arms); ++a)
    for (size_t i = 0; i < d; ++i) numbers_[a * (d + 1) * d + i * d + i] = 1;
}

std::span<const double> LinearBandit::matrix(int arm) const {
  const size_t d = size_t(features_);
  return std::span(numbers_).subspan(size_t(arm) * (d + 1) * d, (d + 1) * d);
}

double LinearBandit::mean(int arm, std::span<const double> x) const {
  if (arm == 0) return 0;
  const size_t d = size_t(features_);
  const auto m = matrix(arm);
  const std::vector<double> theta =
      solve_ridge({m.begin(), m.begin() + int64_t(d * d)}, {m.begin() + int64_t(d * d), m.end()}, 0);
  double sum = 0;
  for (size_t i = 0; i < d; ++i) sum += theta[i] * x[i];
  return sum;
}

double LinearBandit::deviation(int arm, std::span<const double> x) const {
  if (arm == 0) return 0;
  const size_t d = size_t(features_);
  const auto m = matrix(arm);
  const std::vector<double> solved =
      solve_ridge({m.begin(), m.begin() + int64_t(d * d)}, {x.begin(), x.end()}, 0);
  double sum = 0;
  for (size_t i = 0; i < d; ++i) sum += solved[i] * x[i];
  return std::sqrt(std::max(sum, 0.0));
}

int LinearBandit::choose(std::span<const double> x) const {
  int best = 0;
  double highest = 0;
  for (int arm = 1; arm < arms_; ++arm) {
    const double score = mean(arm, x) + exploration_ * deviation(arm, x);
    if (score > highest) highest = score, best = arm;
  }
  return best;
}

void LinearBandit::learn(int arm, std::span<const double> x, double reward) {
  const size_t d = size_t(features_), first = size_t(arm) * (d + 1) * d;
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j < d; ++j) numbers_[first + i * d + j] += x[i] * x[j];
    numbers_[first + d * d + i] += reward * x[i];
  }
}

Array LinearBandit::state() const { return Array::of(numbers_, {arms_, features_ + 1, features_}); }

void LinearBandit::restore(const Array& state) {
  if (state.storage() != Storage::f64 || state.elements() != int64_t(numbers_.size()))
    throw InputError("a bandit of other arms", "forecast: checkpoint",
                     to_string(Sizes{arms_, features_ + 1, features_}));
  const auto numbers = state.as<double>();
  numbers_.assign(numbers.begin(), numbers.end());
}

}  // namespace lockstep::forecast
