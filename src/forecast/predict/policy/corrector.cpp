#include "forecast/predict/policy/corrector.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "forecast/predict/jump/fit.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

constexpr int64_t kMostResiduals = 1000;
constexpr size_t kNeighbours = 10;
constexpr double kMostCorrection = 0.2, kFadeIn100Steps = 0.95, kModelFade = 0.98;

double cosine(std::span<const double> a, std::span<const double> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace

ResidualCorrector::ResidualCorrector(int features, double doubt)
    : features_(features), doubt_(doubt), model_(size_t(features * features + features), 0.0) {}

double ResidualCorrector::nearest(uint64_t step, std::span<const double> features) const {
  const size_t width = size_t(features_) + 2;
  std::vector<std::pair<double, size_t>> near;
  for (size_t e = 0; e < size_t(size()); ++e) {
    const double c = cosine(features, std::span(entries_).subspan(e * width + 2, size_t(features_)));
    if (c > 0) near.emplace_back(-c, e);
  }
  std::sort(near.begin(), near.end());
  near.resize(std::min(near.size(), kNeighbours));
  double sum = 0, weights = doubt_;
  for (const auto& [minus_cosine, e] : near) {
    const double age = double(step) - entries_[e * width];
    const double weight = -minus_cosine * std::pow(kFadeIn100Steps, age / 100);
    sum += weight * entries_[e * width + 1];
    weights += weight;
  }
  return weights > 0 ? sum / weights : 0;
}

double ResidualCorrector::correction(uint64_t step, std::span<const double> features) const {
  if (size() == 0) return 0;
  const size_t d = size_t(features_);
  const std::vector<double> w = solve_ridge({model_.begin(), model_.begin() + int64_t(d * d)},
                                            {model_.begin() + int64_t(d * d), model_.end()}, 1 + doubt_);
  double linear = 0;
  for (size_t i = 0; i < d; ++i) linear += w[i] * features[i];
  return std::clamp(0.7 * nearest(step, features) + 0.3 * linear, -kMostCorrection, kMostCorrection);
}

void ResidualCorrector::learn(uint64_t step, std::span<const double> features, double residual) {
  if (!std::isfinite(residual)) return;
  const size_t d = size_t(features_), width = d + 2;
  if (size() == kMostResiduals) entries_.erase(entries_.begin(), entries_.begin() + int64_t(width));
  entries_.push_back(double(step));
  entries_.push_back(residual);
  entries_.insert(entries_.end(), features.begin(), features.end());
  for (double& m : model_) m *= kModelFade;
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j < d; ++j) model_[i * d + j] += features[i] * features[j];
    model_[d * d + i] += features[i] * residual;
  }
}

void ResidualCorrector::restore(std::span<const double> entries, std::span<const double> model) {
  if (entries.size() % size_t(features_ + 2) != 0 || model.size() != model_.size())
    throw InputError("a corrector's state of another form", "forecast: checkpoint", "its features' count");
  entries_.assign(entries.begin(), entries.end());
  model_.assign(model.begin(), model.end());
}

}  // namespace lockstep::forecast
