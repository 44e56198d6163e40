#include "core/record/stamp.hpp"

#include <mutex>
#include <utility>

#include "core/platform/threads.hpp"

namespace lockstep::record {
namespace {

struct Run {
  Mutex mutex;
  std::function<std::string()> identity;
  std::string known;
};
Run& current_run() {
  static auto* run = new Run;  // outlives every static destructor that may still write
  return *run;
}

}  // namespace

Stamp stamp() {
  Run& run = current_run();
  std::lock_guard lock(run.mutex);
  if (run.identity) run.known = std::exchange(run.identity, nullptr)();
  return {"Lockstep " LOCKSTEP_VERSION, run.known};
}

void set_run(std::function<std::string()> identity) {
  Run& run = current_run();
  std::lock_guard lock(run.mutex);
  run.identity = std::move(identity);
  run.known.clear();
}

}  // namespace lockstep::record
