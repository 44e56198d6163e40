#include "core/platform/process.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <limits>

namespace lockstep::platform {

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t whole = 0, resident = 0;
  return file >> whole >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

double address_space_bytes() {
  rlimit space{};
  const bool limited = ::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
  return limited ? static_cast<double>(space.rlim_cur) : std::numeric_limits<double>::infinity();
}

}  // namespace lockstep::platform
