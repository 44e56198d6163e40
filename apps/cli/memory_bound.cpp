#include "memory_bound.hpp"

#include <fmt/format.h>

#include "core/platform/system.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

void require_memory(double bytes, double total, std::string_view given, std::string_view whose) {
  constexpr double gib = 1 << 30;
  if (bytes <= total) return;
  throw InputError(fmt::format("a size that takes at least {:.1f} GiB of memory", bytes / gib), given,
                   fmt::format("one that fits into the {:.1f} GiB of {}", total / gib, whose));
}

void require_host_memory(double bytes, std::string_view given) {
  require_memory(bytes, static_cast<double>(platform::system_memory().total_bytes), given, "this machine");
}

}  // namespace lockstep::cli
