// Sums that are recorded into graphs and that other kernels make: one order, by groups of kSumLanes lanes.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/kernel/dynamic.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::primitives {

inline constexpr int kSumLanes = 256, kSumChunk = 2048;
inline constexpr KernelOptions kSumGroup{{kSumLanes, 1, 1}, 0};
inline int64_t sum_chunks(int64_t count) { return (count + kSumChunk - 1) / kSumChunk; }

/// The sum over [begin, end) by a group of kSumLanes: lane l goes from 0 over the elements begin + l, begin + l
/// + kSumLanes … in order with sum = add(sum, element); then a tree over the lanes. T: f32 or f64.
template <class T, class Add>
Val<T> strided_sum(const Val<i32>& lane, const Val<i32>& begin, const Val<i32>& end, Add add) {
  Var<T> sum = T(0);
  for_(begin + lane, end, kSumLanes, [&](Val<i32> at) { sum = add(Val<T>(sum), at); });
  return group_sum(Val<T>(sum));
}
template <class T>
Val<T> strided_sum(const Group<1>& g, const Grid<T, 1>& x) {
  return strided_sum<T>(g.lane(), Val<i32>(0), x.size(0),
                        [&](const Val<T>& sum, const Val<i32>& at) { return sum + x[at]; });
}
/// The same of a type known when the kernel is traced.
template <class Add>
AnyVal strided_sum(Type type, const Val<i32>& lane, const Val<i32>& begin, const Val<i32>& end, Add add) {
  AnyVar sum = AnyVal::number(type, 0);
  for_(begin + lane, end, kSumLanes, [&](Val<i32> at) { sum = add(AnyVal(sum), at); });
  return group_sum(sum);
}
/// The same of the chunk of kSumChunk elements that the group's number says.
template <class T, class Add>
Val<T> chunk_sum(const Group<1>& g, const Val<i32>& size, Add add) {
  return strided_sum<T>(g.lane(), g.id() * kSumChunk, min(size, (g.id() + 1) * kSumChunk), add);
}

/// Sum of a vector of f32 or f64 with scratch memory of its own: chunk sums, then the strided sum of these by
/// one group.
class ChunkedSum {
 public:
  ChunkedSum() = default;
  ChunkedSum(const Device& device, Storage storage, int64_t count)
      : device_(device),
        count_(count),
        partial_(device.allocate(storage, {std::max<int64_t>(sum_chunks(count), 1)})) {}
  /// result[0] = sum of x, which has `count` elements.
  void launch(const Buffer& x, const Buffer& result) const;
  /// The kernels that launch() launches, to be traced when they are called.
  std::vector<std::function<Kernel()>> kernels(Storage storage) const;

 private:
  Device device_;
  int64_t count_ = 0;
  Buffer partial_;
};

}  // namespace lockstep::primitives
