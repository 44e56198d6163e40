// Fits of sweeps in a file, from which a run that was killed continues.
#pragma once

#include <chrono>
#include <filesystem>

#include "core/record/identity.hpp"
#include "forecast/curve/sweep_policies.hpp"

namespace lockstep::forecast {

/// The ends that are known. With a file it has all of them: those found in it, and new ones soon after they came.
class KeptEnds {
 public:
  /// Empty path: no file. Throws InputError for a file of another run or that is no such checkpoint.
  KeptEnds(std::filesystem::path file, const record::Identity& identity);

  const KnownEnds& ends() const { return ends_; }
  int64_t count() const { return int64_t(ends_.size()); }
  int64_t computed() const { return computed_; }
  void add(const SweepFit& fit, const ExpectedEnd& end);
  /// The sweeps so far need no fit any more.
  void end_block();
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void read();
  void write();

  const std::filesystem::path file_;
  const record::Identity& identity_;
  KnownEnds ends_;
  int64_t computed_ = 0;
  Clock::time_point written_{};
  Clock::duration pause_{};  // to the next write
};

}  // namespace lockstep::forecast
