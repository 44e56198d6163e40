#include "primitives/sums/host_reduce.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/error.hpp"
#include "primitives/sums/tree.hpp"

namespace lockstep::primitives {

namespace {

/// host_group_sum where lanes from `used` on hold a zero that does not change the others, and are not looked at.
double sum_of_used(HostLanes& v, size_t used) {
  if (used == 0) return 0;
  for (size_t s = v.size() / 2; s > 0; s /= 2) {
    for (size_t l = 0; l + s < used; ++l) v[l] += v[l + s];
    used = std::min(used, s);
  }
  return v[0];
}

/// strided_sum over [begin, end).
double strided(std::span<const double> x) {
  HostLanes lanes;
  const size_t count = std::min(x.size(), lanes.size());
  for (size_t l = 0; l < count; ++l) lanes[l] = 0.0 + x[l];
  for (size_t at = lanes.size(); at < x.size(); ++at) lanes[at % lanes.size()] += x[at];
  return sum_of_used(lanes, count);
}

}  // namespace

double host_group_sum(HostLanes& v) { return sum_of_used(v, v.size()); }

double host_chunked_sum(std::span<const double> x) {
  if (int64_t(x.size()) <= kSumChunk) return strided(x);
  std::vector<double> chunks;
  for (size_t at = 0; at < x.size(); at += kSumChunk)
    chunks.push_back(strided(x.subspan(at, std::min(x.size() - at, size_t(kSumChunk)))));
  return strided(chunks);
}

double host_dot(std::span<const double> x, std::span<const double> y) {
  if (int64_t(x.size()) > kReduceChunk) throw InternalError("a long vector", "host_dot", "one chunk");
  if (x.empty()) return 0;
  static_assert(kSumLanes == kLanes);
  std::array<std::array<double, kWide>, kLanes> a;
  const size_t used = std::min((x.size() + kWide - 1) / kWide, a.size());
  for (size_t l = 0; l < used; ++l) a[l].fill(neutral<double>(Chunk::dot));
  for (size_t at = 0; at < x.size(); ++at) {
    double& sum = a[at / kWide % kLanes][at % kWide];
    sum = std::fma(x[at], y[at], sum);
  }
  HostLanes lanes;
  for (size_t l = 0; l < used; ++l) lanes[l] = (a[l][0] + a[l][1]) + (a[l][2] + a[l][3]);
  return sum_of_used(lanes, used);
}

double host_norm(std::span<const double> x) { return std::sqrt(host_dot(x, x)); }

}  // namespace lockstep::primitives
