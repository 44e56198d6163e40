// Runs that no memory holds are refused before anything is made of them.
#include "lockstep/flow/memory.hpp"

#include <fmt/format.h>

#include "core/platform/system.hpp"
#include "device/capabilities.hpp"

namespace lockstep::flow {

void require_memory(Context& context, const RunOptions& run, bool fallback, const std::string& sizes) {
  if (!run.grid_given) return;
  const auto require = [&](double bytes, double total, std::string_view whose) {
    constexpr double kGib = 1 << 30;
    if (bytes <= total) return;
    throw schema_of<RunOptions>().error(
        {OptionError::Kind::invalid, run.members > 1 ? sizes + " and {members}" : sizes,
         fmt::format("a size that takes at least {:.1f} GiB of memory", bytes / kGib),
         fmt::format("one that fits into the {:.1f} GiB of {}", total / kGib, whose), ""});
  };
  const auto host = static_cast<double>(platform::system_memory().total_bytes);
  // The start is made on the host in f64, as a field and its transform.
  require(16 * static_cast<double>(run.model.grid.points()), host, "this machine");
  const Device device = context.device();
  const auto bytes =
      static_cast<double>(memory_bytes(run.model, run.stepping, run.precision, run.members, device.info()));
  const auto memory = static_cast<double>(device.memory().total_bytes);
  if (capabilities_of(device).host_memory || (fallback && bytes > memory))
    require(bytes, host, "this machine");
  else
    require(bytes, memory, device.info().name);
}

}  // namespace lockstep::flow
