// The order of elimination that the options state.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// By block, its group; blocks that no group names are in the last one. Empty: automatic.
std::vector<int32_t> elimination_groups(const Problem& problem, const Options& options);
/// The same by tangent coordinate.
std::vector<int32_t> elimination_order(const Problem& problem, const Options& options);
/// The set that is the first group; -1: none is.
int first_group_set(const Problem& problem, const std::vector<int32_t>& groups);
/// Throws OptionError where the method and the solver do not read the order, or cannot eliminate its first group.
void check_order(const Problem& problem, const Options& options, Linear linear);

}  // namespace lockstep::solve
