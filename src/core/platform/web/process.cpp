#include "core/platform/process.hpp"

#include <limits>

namespace lockstep::platform {

int64_t resident_bytes() { return 0; }
int64_t peak_resident_bytes() { return 0; }
double address_space_bytes() { return std::numeric_limits<double>::infinity(); }

}  // namespace lockstep::platform
