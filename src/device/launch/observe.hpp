// Follows the launches of this thread.
#pragma once

#include <functional>
#include <span>

#include "lockstep/device.hpp"

namespace lockstep::device {

using LaunchObserver = std::function<void(const Kernel&, const Shape& extent, std::span<const Argument>)>;

/// While it lives, `observer` is called before each launch of this thread, recorded ones included. They do not nest.
class ObservedLaunches {
 public:
  explicit ObservedLaunches(const LaunchObserver& observer);
  ~ObservedLaunches();
  ObservedLaunches(const ObservedLaunches&) = delete;
  ObservedLaunches& operator=(const ObservedLaunches&) = delete;
};

}  // namespace lockstep::device
