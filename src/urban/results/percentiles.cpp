#include "urban/results/percentiles.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace lockstep::urban {
namespace {

constexpr size_t kBuckets = 65536;
constexpr uint32_t kSign = 0x80000000u;

/// Whole numbers in the order of the values; zeros of both signs are one.
uint32_t order_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0f);
  return bits & kSign ? ~bits : bits | kSign;
}
float value_of_order(uint32_t order) { return std::bit_cast<float>(order & kSign ? order & ~kSign : ~order); }

}  // namespace

std::vector<double> percentiles(std::span<const float> values, std::span<const double> shares) {
  std::vector<double> found(shares.size(), std::numeric_limits<double>::quiet_NaN());
  if (values.empty()) return found;
  std::vector<size_t> up_to(kBuckets + 1);
  for (const float v : values) ++up_to[(order_of(v) >> 16) + 1];
  for (size_t b = 0; b < kBuckets; ++b) up_to[b + 1] += up_to[b];
  const auto bucket_of = [&](size_t rank) {
    return static_cast<size_t>(std::upper_bound(up_to.begin(), up_to.end(), rank) - up_to.begin()) - 1;
  };
  struct Wanted {
    size_t below = 0, above = 0;
    double part = 0;
  };
  std::vector<Wanted> wanted;
  // Buckets whose values are needed, by their place in `inside`; 0 is that of all others.
  std::vector<uint16_t> place(kBuckets);
  std::vector<std::vector<uint32_t>> inside(1);
  const auto open = [&](size_t bucket) {
    if (place[bucket] != 0) return;
    place[bucket] = static_cast<uint16_t>(inside.size());
    inside.emplace_back().reserve(up_to[bucket + 1] - up_to[bucket]);
  };
  for (const double share : shares) {
    const double at = std::clamp(share / 100, 0.0, 1.0) * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(at);
    wanted.push_back({below, std::min(below + 1, values.size() - 1), at - std::floor(at)});
    open(bucket_of(wanted.back().below));
    open(bucket_of(wanted.back().above));
  }
  for (const float v : values)
    if (const uint32_t order = order_of(v); place[order >> 16] != 0)
      inside[place[order >> 16]].push_back(order);
  for (std::vector<uint32_t>& bucket : inside)
    if (!std::ranges::all_of(bucket, [&](uint32_t o) { return o == bucket.front(); }))
      std::sort(bucket.begin(), bucket.end());
  const auto at_rank = [&](size_t rank) {
    const size_t bucket = bucket_of(rank);
    return static_cast<double>(value_of_order(inside[place[bucket]][rank - up_to[bucket]]));
  };
  for (size_t k = 0; k < wanted.size(); ++k) {
    const double below = at_rank(wanted[k].below), above = at_rank(wanted[k].above);
    found[k] = below + (above - below) * wanted[k].part;
  }
  return found;
}

}  // namespace lockstep::urban
