// The context of a device, current in this thread for a while.
#pragma once

#include <utility>

#include "device/cuda/libraries/driver.hpp"

namespace lockstep::device::cuda {

/// Programs that use CUDA too, such as PyTorch, take the current context for their choice of a device: the one that was
/// current becomes so again. A thread that had none keeps that of device 0, which the runtime would choose for it.
class Entered {
 public:
  Entered() = default;
  Entered(const Driver& driver, ContextHandle context, bool first_device) noexcept {
    driver.context_current(&before_);
    if (before_ != context) {
      entered_ = driver.context_set(context) == kSuccess;
      if (entered_ && (before_ || !first_device)) restores_ = &driver;
    } else {
      entered_ = true;
    }
  }
  Entered(Entered&& from) noexcept
      : before_(from.before_), entered_(from.entered_), restores_(std::exchange(from.restores_, nullptr)) {}
  Entered& operator=(Entered&&) = delete;
  ~Entered() {
    if (restores_) restores_->context_set(before_);
  }
  explicit operator bool() const { return entered_; }

 private:
  ContextHandle before_ = nullptr;
  bool entered_ = false;
  const Driver* restores_ = nullptr;
};

}  // namespace lockstep::device::cuda
