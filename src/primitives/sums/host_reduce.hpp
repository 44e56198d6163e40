// Reductions of few numbers of f64 by loops on the host, bit for bit what the kernels give in exact numerics: where a
// device's memory is the host's, a launch takes longer than adding a hundred numbers.
#pragma once

#include <array>
#include <span>

#include "primitives/sums/chunked_sum.hpp"

namespace lockstep::primitives {

/// The values of a group's lanes.
using HostLanes = std::array<double, kSumLanes>;
/// group_sum: for s = lanes/2 … 1: v[l] += v[l + s].
double host_group_sum(HostLanes& v);

/// ChunkedSum.
double host_chunked_sum(std::span<const double> x);
/// dot and norm of up to kReduceChunk numbers.
double host_dot(std::span<const double> x, std::span<const double> y);
double host_norm(std::span<const double> x);

}  // namespace lockstep::primitives
