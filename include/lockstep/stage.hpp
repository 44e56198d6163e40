// The record of a run's stage.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// One stage, summed over its runs. `device` is the one that did the work, so after a fallback it is the CPU.
struct StageRecord {
  std::string stage, device;
  double seconds = 0;
  int64_t bytes_to_device = 0, bytes_from_device = 0, launches = 0, fallbacks = 0, runs = 0;
};

}  // namespace lockstep
