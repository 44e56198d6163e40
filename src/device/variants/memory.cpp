#include "device/variants/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "core/platform/threads.hpp"
#include "core/reports/log.hpp"
#include "core/reports/summary.hpp"

namespace lockstep::variants {

std::string no_memory(int64_t scratch_bytes, int64_t free_bytes) {
  if (scratch_bytes <= free_bytes) return {};
  return fmt::format("{} of scratch memory, where {} are free", human_bytes(uint64_t(scratch_bytes)),
                     human_bytes(uint64_t(std::max<int64_t>(free_bytes, 0))));
}

std::string no_memory(const Computation& computation, int variant, const Device& device,
                      int64_t scratch_bytes) {
  constexpr int64_t kFew = int64_t(64) << 20;
  if (scratch_bytes <= kFew) return {};
  std::string why = no_memory(scratch_bytes, device.memory().free_bytes);
  if (why.empty()) return why;
  static Mutex mutex;
  static auto* const said = new std::set<std::pair<const Computation*, int>>;  // outlives every device
  std::lock_guard lock(mutex);
  if (said->emplace(&computation, variant).second)
    logging::warning("{} on {} not by {}: {}", computation.name(), device.info().name,
                     computation.variant(variant), why);
  return why;
}

}  // namespace lockstep::variants
