// When a problem counts as rank deficient.
#pragma once

namespace lockstep::solve {

/// Least singular value, pivot or eigenvalue over the largest, columns scaled to length 1.
inline constexpr double kRank = 1e-13;
/// Least squared share of an unknown in the directions without effect with which it is named.
inline constexpr double kShare = 1e-10;

}  // namespace lockstep::solve
