// Runs a generated program on a device and compares what two devices made of it.
#pragma once

#include <string>
#include <vector>

#include "device/backend.hpp"
#include "generator.hpp"
#include "lockstep/device.hpp"

namespace lockstep::fuzz {

using Contents = std::vector<std::vector<uint8_t>>;  // by buffer parameter

class Runner {
 public:
  /// A device name; `interp+passes`: the interpreter on what the pass pipeline makes, columns included; or
  /// `cuda+points`: CUDA with several points a lane, however small the domain.
  explicit Runner(const std::string& device);
  /// The buffers' contents afterwards. Throws the device's errors.
  Contents run(const Program& program);
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Device device_;
  std::vector<std::shared_ptr<device::Memory>> memory_;  // reused, by buffer parameter
};

/// Where the contents first differ, as text, or empty. NaN equals NaN; in the webgpu profile -0 equals 0.
std::string difference(const Program& program, const Contents& a, const Contents& b);

}  // namespace lockstep::fuzz
