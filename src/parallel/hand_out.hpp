// Pieces of work of unknown length, whose results rank 0 takes.
#pragma once

#include <cstdint>
#include <functional>

#include "lockstep/parallel.hpp"

namespace lockstep::parallel {

/// Computes numbers 0 … count - 1, each on the rank that asks next. `take` is called on rank 0 with each result as it
/// comes, in any order and from any thread, one at a time. Collective.
void hand_out(const Group& group, int64_t count, const std::function<Bytes(int64_t)>& compute,
              const std::function<void(int64_t, const Bytes&)>& take);

}  // namespace lockstep::parallel
