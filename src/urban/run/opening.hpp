// Runs whose device opens while they read their rasters: opening a GPU takes a fifth of a second.
#pragma once

#include <functional>
#include <future>

#include "core/reports/trace.hpp"
#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Opens a context that outlives the run. Called once, on another thread.
using OpenContext = std::function<Context&()>;

/// The runs of urban.hpp. Where both inputs and device are bad, the inputs' error is thrown.
ShadowRunResult run(const OpenContext& open, const ShadowRunOptions& options);
SkyRunResult run(const OpenContext& open, const SkyRunOptions& options);

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
