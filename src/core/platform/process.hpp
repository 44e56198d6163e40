// Memory of this process.
#pragma once

#include <cstdint>

namespace lockstep::platform {

/// Memory that is resident now (bytes); 0: not known.
int64_t resident_bytes();
/// The most that was resident at a time.
int64_t peak_resident_bytes();
/// The limit of the address space; infinity: none.
double address_space_bytes();

}  // namespace lockstep::platform
