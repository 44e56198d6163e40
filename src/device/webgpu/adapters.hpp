// Adapters in the terms of the common layer.
#pragma once

#include "device/backend.hpp"
#include "device/webgpu/native.hpp"

namespace lockstep::device::webgpu {

DeviceInfo device_info(const Adapter& adapter, int number);
/// Memory of the adapter's largest device-local heap, or of the system where it runs on the CPU. 0 = not
/// known.
MemoryInfo memory_info(const Adapter& adapter);
std::vector<DeviceStatus> list_adapters();

}  // namespace lockstep::device::webgpu
