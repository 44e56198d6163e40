// How buffers pass between the devices of ranks.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "parallel/transports/transport.hpp"

namespace lockstep::parallel {

class DeviceLink {
 public:
  virtual ~DeviceLink() = default;
  virtual std::string name() const = 0;
  /// Work that the device is given afterwards runs after the exchange.
  virtual void begin(const Device& device, std::span<const Slice> sends, std::span<const Slice> receives) = 0;
  /// Waits for the exchanges that began.
  virtual void finish() = 0;
};

/// Through host memory and the group's transport.
std::unique_ptr<DeviceLink> make_host_link(Group::State& state);
/// Through NCCL; null with the reason where a rank's device cannot use it. Collective.
std::unique_ptr<DeviceLink> make_nccl_link(const Group& group, const Device& device, std::string& why);

}  // namespace lockstep::parallel
