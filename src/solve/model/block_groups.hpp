// Groups of blocks as options write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/solve.hpp"

namespace lockstep::solve {

/// By block, the number of its group in the option (`Options::order`, `Options::inner_groups`); -1: of none. Throws
/// OptionError for texts of another form, sets and blocks that the problem does not have, and blocks in two groups.
std::vector<int32_t> block_groups(const Problem& problem, std::span<const std::string> groups,
                                  const char* option);

/// "block 3 of poses".
std::string block_text(const Problem::State& state, int64_t block);

}  // namespace lockstep::solve
