// The summary of a run, stage by stage: time, bytes moved, launches, fallbacks, peak memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/platform/threads.hpp"
#include "lockstep/stage.hpp"

namespace lockstep {

/// Collects stages; thread-safe. Records of the same stage and device add up.
class RunSummary {
 public:
  RunSummary() : start_(std::chrono::steady_clock::now()) {}

  void set_device(std::string device);
  void set_numerics(std::string numerics);
  void add(const StageRecord& record);
  /// Keeps the largest value it is given.
  void peak_device_bytes(int64_t bytes);

  std::vector<StageRecord> stages() const;
  int64_t peak_device_bytes() const;
  std::map<std::string, int64_t> fallbacks() const;
  double seconds() const;

  /// The members that every computing command's JSON has: device, numerics, stages, fallbacks,
  /// peak_device_bytes, seconds. `fallbacks` lists every stage that ran, with 0 where nothing fell back.
  void add_to(nlohmann::ordered_json& object) const;
  /// The table for people, without a final line break.
  std::string table() const;

 private:
  const std::chrono::steady_clock::time_point start_;
  mutable Mutex mutex_;
  std::string device_ = "cpu", numerics_ = "exact";
  std::vector<StageRecord> stages_;
  int64_t peak_device_bytes_ = 0;
};

/// "1.50 GiB", "12.0 KiB", "17 B".
std::string human_bytes(uint64_t bytes);
/// "1.23 s", "4.56 ms", "7.8 µs".
std::string human_seconds(double seconds);

}  // namespace lockstep
