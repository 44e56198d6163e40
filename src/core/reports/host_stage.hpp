// Work of a run on the host, timed in addition to the context's stages.
#pragma once

#include <string>
#include <vector>

#include "core/reports/trace.hpp"
#include "lockstep/stage.hpp"

namespace lockstep {

/// Does the work, appends its record to `stages` (also where it throws) and returns what it returned.
template <class Work>
auto host_stage(std::vector<StageRecord>& stages, const std::string& name, Work work) {
  struct Timer {
    std::vector<StageRecord>& stages;
    const std::string& name;
    const double start_us = Trace::now_us();
    const TimedScope trace{name};
    ~Timer() { stages.push_back({name, "host", (Trace::now_us() - start_us) * 1e-6, 0, 0, 0, 0, 1}); }
  };
  const Timer timer{stages, name};
  return work();
}

}  // namespace lockstep
