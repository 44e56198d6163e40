// Capabilities of a device, as numbers: applications decide by these and by measured tables, not by kinds of devices.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/device.hpp"

namespace lockstep {

struct Capabilities {
  bool host_memory = false;  // buffers are in the process's own memory
  bool ieee = true;          // exact numerics give the bits of all such devices; WebGPU promises bounds
  bool vectors = false;      // lanes side by side are computed by vector instructions of a CPU
  /// 0: the device has none, or does not say.
  int warp_lanes = 0;
  int compute_capability = 0;  // CUDA: 90 for 9.0
  int64_t last_level_cache_bytes = 0;
};
Capabilities capabilities_of(const DeviceInfo& device);
inline Capabilities capabilities_of(const Device& device) { return capabilities_of(device.info()); }

/// "NVIDIA H200", "AMD EPYC 9R14": measured crossovers belong to it.
std::string_view model_of(const DeviceInfo& device);

}  // namespace lockstep
