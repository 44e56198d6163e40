#include "urban/areas/zonal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::urban {
namespace {

constexpr size_t kZoneBuckets = 256;

/// Buckets of equal width between the lowest and the highest value: only those that hold a percentile are sorted.
std::vector<double> weighted_percentiles(const ZoneValues& zone, std::span<const double> shares,
                                         double lowest, double highest, double weight) {
  const double scale = highest > lowest ? static_cast<double>(kZoneBuckets) / (highest - lowest) : 0;
  const auto bucket_of = [&](float v) {
    return std::min(kZoneBuckets - 1, static_cast<size_t>((static_cast<double>(v) - lowest) * scale));
  };
  std::vector<double> up_to(kZoneBuckets + 1);
  for (size_t k = 0; k < zone.values.size(); ++k) up_to[bucket_of(zone.values[k]) + 1] += zone.weights[k];
  for (size_t b = 0; b < kZoneBuckets; ++b) up_to[b + 1] += up_to[b];
  std::vector<double> found;
  std::vector<std::pair<float, double>> bucket;
  size_t sorted = kZoneBuckets;  // the bucket that is in order
  for (const double share : shares) {
    // Sums of shares in another order differ by their rounding.
    const double wanted = std::clamp(share / 100, 0.0, 1.0) * weight * (1 - 1e-12);
    const auto end = std::lower_bound(up_to.begin() + 1, up_to.end(), wanted);
    size_t b = std::min(kZoneBuckets - 1, static_cast<size_t>(end - up_to.begin()) - 1);
    while (b + 1 < kZoneBuckets && up_to[b + 1] == up_to[b]) ++b;
    while (b > 0 && up_to[b + 1] == up_to[b]) --b;
    if (b != sorted) {
      bucket.clear();
      for (size_t k = 0; k < zone.values.size(); ++k)
        if (bucket_of(zone.values[k]) == b) bucket.emplace_back(zone.values[k], zone.weights[k]);
      std::ranges::sort(bucket);
      sorted = b;
    }
    double sum = up_to[b];
    size_t k = 0;
    while (k + 1 < bucket.size() && sum + bucket[k].second < wanted) sum += bucket[k++].second;
    found.push_back(static_cast<double>(bucket[k].first));
  }
  return found;
}

}  // namespace

void ZoneValues::take(const Zone& zone, std::span<const float> grid) {
  values.clear();
  weights.clear();
  for (size_t k = 0; k < zone.pixels.size(); ++k) {
    const float v = grid[zone.pixels[k]];
    if (std::isnan(v)) continue;
    values.push_back(v);
    weights.push_back(zone.shares[k]);
  }
}

ZonalStatistics ZoneValues::statistics(std::span<const double> shares) const {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  ZonalStatistics s{0, none, none, none, none, std::vector<double>(shares.size(), none)};
  if (values.empty()) return s;
  const auto [low, high] = std::ranges::minmax(values);
  s.minimum = static_cast<double>(low);
  s.maximum = static_cast<double>(high);
  // About the lowest value, so that large means leave digits for the deviation.
  double sum = 0, squares = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    const double d = static_cast<double>(values[k]) - s.minimum;
    s.weight += weights[k];
    sum += weights[k] * d;
    squares += weights[k] * d * d;
  }
  s.mean = s.minimum + sum / s.weight;
  s.deviation = std::sqrt(std::max(0.0, squares / s.weight - (sum / s.weight) * (sum / s.weight)));
  s.percentiles = weighted_percentiles(*this, shares, s.minimum, s.maximum, s.weight);
  return s;
}

}  // namespace lockstep::urban
