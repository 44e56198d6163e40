// The context of a run, whose device may open while the run reads its rasters.
#pragma once

#include <future>

#include "core/reports/trace.hpp"
#include "lockstep/urban/opening.hpp"

namespace lockstep::urban {

/// A context that is there, or opens on a thread of its own.
class OpeningContext {
 public:
  explicit OpeningContext(Context& context) : context_(&context) {}
  explicit OpeningContext(const OpenContext& open)
      : opened_(std::async(std::launch::async, [&open] {
          const TimedScope trace{"open"};
          return &open();
        })) {}
  /// Throws what opening threw.
  Context& wait() {
    if (!context_) context_ = opened_.get();
    return *context_;
  }

 private:
  Context* context_ = nullptr;
  std::future<Context*> opened_;  // waited for where the run ends before
};

}  // namespace lockstep::urban
