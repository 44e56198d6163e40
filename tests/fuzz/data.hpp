// Constants and input data with many special values.
#pragma once

#include "generator.hpp"
#include "lockstep/types.hpp"

namespace lockstep::fuzz {

/// Bits of a random value: special values often. Small: whole numbers of at most 8 for floats.
uint64_t random_bits(Random& random, Type type, bool small);
/// Random contents of `count` elements.
std::vector<uint8_t> random_data(Random& random, Storage storage, int64_t count, bool small);

}  // namespace lockstep::fuzz
