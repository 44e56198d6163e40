#include "core/schema/memory.hpp"

#include <fmt/format.h>

#include "core/platform/system.hpp"

namespace lockstep {

void require_host_memory(const OptionList& list, double bytes, const std::string& where) {
  constexpr double gib = 1 << 30;
  const auto total = static_cast<double>(platform::system_memory().total_bytes);
  if (bytes <= total) return;
  throw list.error({OptionError::Kind::invalid, where,
                    fmt::format("a size that takes at least {:.1f} GiB of memory", bytes / gib),
                    fmt::format("one that fits into the {:.1f} GiB of this machine", total / gib), ""});
}

}  // namespace lockstep
