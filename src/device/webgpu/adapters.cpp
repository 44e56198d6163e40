#include "device/webgpu/adapters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/platform/system.hpp"
#include "device/webgpu/memory/vulkan_memory.hpp"

namespace lockstep::device::webgpu {

DeviceInfo device_info(const Adapter& adapter, int number) {
  DeviceInfo info;
  info.name = fmt::format("webgpu:{}", number);
  info.kind = DeviceKind::webgpu;
  info.description = fmt::format("{}, {}{}{}", adapter.name, adapter.interface,
                                 adapter.driver.empty() ? "" : ", ", adapter.driver);
  info.architecture = adapter.vendor ? fmt::format("vulkan-{:x}-{}", adapter.vendor, adapter.name)
                                     : fmt::format("{}-{}", adapter.interface, adapter.name);
  info.software = adapter.software();
  const WGPULimits& l = adapter.limits;
  Limits& limits = info.limits;
  limits.groups.fill(l.maxComputeWorkgroupsPerDimension);
  limits.group_lanes = l.maxComputeInvocationsPerWorkgroup;
  // Whole windows of the largest offset alignment, so that each window of a split buffer can be bound.
  limits.binding_bytes =
      int64_t(std::min<uint64_t>(l.maxStorageBufferBindingSize, INT64_MAX)) & ~int64_t(255);
  limits.bindings = l.maxStorageBuffersPerShaderStage;
  // Longer buffers than the adapter's consist of several; a kernel sees as much as it can bind.
  // 32-bit indices reach 2^31 elements of 4 bytes.
  limits.buffer_bytes =
      std::min<int64_t>(limits.binding_bytes * std::min<int64_t>(limits.bindings, 64), int64_t(1) << 33);
  limits.shared_bytes = l.maxComputeWorkgroupStorageSize;
  limits.f64 = false;
  limits.f16 = true;
  return info;
}

MemoryInfo memory_info(const Adapter& adapter) {
  if (!adapter.software()) return vulkan_memory(adapter.vendor, adapter.number, adapter.name);
  const platform::SystemMemory memory = platform::system_memory();
  return {memory.total_bytes, memory.free_bytes};
}

std::vector<DeviceStatus> list_adapters() {
  std::string reason;
  const std::vector<Adapter>& all = adapters(&reason);
  std::vector<DeviceStatus> list;
  for (size_t i = 0; i < all.size(); ++i) {
    DeviceStatus status;
    status.info = device_info(all[i], int(i));
    status.memory = memory_info(all[i]);
    status.available = true;
    list.push_back(std::move(status));
  }
  if (list.empty()) {
    DeviceStatus status;
    status.info.name = "webgpu";
    status.info.kind = DeviceKind::webgpu;
    status.reason = reason;
    list.push_back(std::move(status));
  }
  return list;
}

}  // namespace lockstep::device::webgpu
