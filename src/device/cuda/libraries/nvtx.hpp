// Ranges for NVIDIA's tools (NVTX 3): where such a tool runs the program, NVTX_INJECTION64_PATH names its
// library.
#pragma once

namespace lockstep::device::cuda::nvtx {

/// Loads the tool's library, once, if there is one; from then on every TimedScope is a range of it too.
void attach();
/// The tool's range on this thread; nothing without a tool.
void push(const char* name);
void pop();

class Range {
 public:
  explicit Range(const char* name) { push(name); }
  ~Range() { pop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace lockstep::device::cuda::nvtx
