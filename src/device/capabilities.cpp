#include "device/capabilities.hpp"

#include <charconv>

#include "core/platform/system.hpp"

namespace lockstep {

Capabilities capabilities_of(const DeviceInfo& device) {
  const bool cpu = device.kind == DeviceKind::cpu, cuda = device.kind == DeviceKind::cuda;
  Capabilities c;
  c.host_memory = cpu || device.kind == DeviceKind::interp;
  c.ieee = device.kind != DeviceKind::webgpu;
  c.vectors = cpu;
  static const int64_t cache = platform::last_level_cache_bytes();
  if (cpu) c.last_level_cache_bytes = cache;
  constexpr std::string_view kPrefix = "sm_";
  if (cuda && device.architecture.starts_with(kPrefix)) {
    const char* end = device.architecture.data() + device.architecture.size();
    std::from_chars(device.architecture.data() + kPrefix.size(), end, c.compute_capability);
  }
  if (cuda) c.warp_lanes = 32;
  return c;
}

std::string_view model_of(const DeviceInfo& device) {
  const std::string_view description = device.description;
  return description.substr(0, description.find(", "));
}

}  // namespace lockstep
