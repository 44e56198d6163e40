// Sums in a fixed order with scratch memory of their own, so that they can be recorded into graphs.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep::solve {

inline constexpr int kSumLanes = 256, kSumChunk = 2048;

/// Sum of a vector. Lane l of a group of kSumLanes adds the elements l, l + kSumLanes … of its chunk in
/// order; a tree over the lanes; then one group does the same with the chunks' sums.
class FixedSum {
 public:
  FixedSum() = default;
  FixedSum(const Device& device, Storage storage, int64_t count);
  /// result[0] = sum of x, which has `count` elements.
  void launch(const Buffer& x, const Buffer& result) const;
  /// The kernels that launch() launches, to be traced when they are called.
  std::vector<std::function<Kernel()>> kernels(Storage storage) const;

 private:
  Device device_;
  int64_t count_ = 0;
  Buffer partial_;
};

inline int64_t chunks_of(int64_t count) { return (count + kSumChunk - 1) / kSumChunk; }

}  // namespace lockstep::solve
