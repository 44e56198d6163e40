// Times of the phases of work on a stream, by events of the device where it has any.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep::device {

class Event;

/// Seconds by phase.
using PhaseSeconds = std::map<std::string, double>;

class PhaseClock {
 public:
  PhaseClock(const Device& device, const Stream& stream);
  /// The stream's work from now on belongs to the phase of the next mark.
  void begin();
  /// Names the phase of the work since the last mark.
  void mark(const std::string& phase);
  /// Adds what was marked since begin(); waits for that work.
  void add_to(PhaseSeconds& seconds);

 private:
  Device device_;
  Stream stream_;
  std::vector<std::pair<std::string, std::shared_ptr<Event>>> marks_;
};

}  // namespace lockstep::device
