// Counts what a test program allocates.
#pragma once

#include <cstdint>

namespace lockstep::solve::test {

/// Bytes that this thread has asked operator new for so far.
uint64_t allocated_bytes();

}  // namespace lockstep::solve::test
