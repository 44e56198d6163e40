// Work that one stream finishes part by part and another takes up.
#pragma once

#include <vector>

#include "core/platform/threads.hpp"
#include "lockstep/device.hpp"

namespace lockstep::flow {

/// Two threads of a host: one passes parts on in order, the other one follows. The order on the device is kept by
/// streams that stand for moments of the first one's.
class Relay {
 public:
  /// `parts` of work on `device`; where both streams are not of one device, `ordered` is false, and a part is passed on
  /// once it is on the host.
  Relay(const Device& device, int64_t parts, bool ordered = true) : device_(device) {
    for (int64_t k = 0; ordered && k < parts; ++k) moments_.push_back(device.stream());
  }

  /// The next part ends with what this thread's stream was given so far.
  void pass() {
    if (!moments_.empty()) device_.begin_after({}, moments_.at(size_t(passed_)));
    const std::lock_guard lock(mutex_);
    ++passed_;
    changed_.notify_all();
  }
  /// No more will come.
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  /// This thread's stream continues after that part. Waits until the part was given to the device; false where it never
  /// will be.
  bool follow(int64_t part) {
    {
      UniqueLock<Mutex> lock(mutex_);
      changed_.wait(lock, [&] { return passed_ > part || stopped_; });
      if (passed_ <= part) return false;
    }
    if (!moments_.empty()) device_.begin_after(moments_.at(size_t(part)), {});
    return true;
  }

 private:
  Device device_;
  std::vector<Stream> moments_;
  Mutex mutex_;
  ConditionVariable changed_;
  int64_t passed_ = 0;
  bool stopped_ = false;
};

}  // namespace lockstep::flow
