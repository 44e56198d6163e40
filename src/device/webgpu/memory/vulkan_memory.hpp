// Memory of a Vulkan device. WebGPU has no call for it, so the Vulkan loader is queried in addition to wgpu-native.
#pragma once

#include <cstdint>
#include <string>

#include "core/dynamic_library.hpp"
#include "lockstep/device.hpp"

namespace lockstep::device::webgpu {

/// libvulkan.so.1, loaded when first requested; empty where there is none.
const DynamicLibrary& vulkan_loader();
/// Largest device-local heap of the physical device with this vendor, device number and name; zeros where not
/// known.
MemoryInfo vulkan_memory(uint32_t vendor, uint32_t device, const std::string& name);

}  // namespace lockstep::device::webgpu
