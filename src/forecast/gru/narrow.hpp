// U of a sequence in bf16 or fp8, and products with it.
#pragma once

#include <vector>

#include "lockstep/forecast/gru.hpp"

namespace lockstep::forecast {

/// U (D, 3 D), its transpose, for backward and steps by rows, or both. Sums go in the order of k by fma, as those of primitives::matmul.
class NarrowRecurrent {
 public:
  NarrowRecurrent() = default;
  NarrowRecurrent(const Device& device, WeightType type, int64_t hidden, bool columns, bool transposed);
  static int64_t bytes(WeightType type, int64_t hidden, bool columns, bool transposed);

  /// From (D, 3 D) in f32; throws as round_weights() does.
  void set(const Array& u) const;
  /// to = x U for `count` gates from `first` on; x (B, D).
  void times(const Buffer& x, int64_t first, int64_t count, const Buffer& to) const;
  /// to = x U^T of these gates; x (B, count D).
  void times_transposed(const Buffer& x, int64_t first, int64_t count, const Buffer& to) const;
  const Buffer& columns() const { return u_; }
  const Buffer& transposed() const { return transposed_; }
  const Buffer& scales() const { return scales_; }
  /// Of one sequence and of several, and back.
  std::vector<Kernel> kernels() const;

 private:
  template <class W>
  void multiply(const Buffer& x, const Buffer& u, const Buffer& scales, const Buffer& to, bool back) const;

  Device device_;
  WeightType type_ = WeightType::f32;
  int64_t hidden_ = 0;
  Buffer u_, transposed_, scales_;  // (D, 3 D), (3 D, D), of fp8 (3 D)
};

}  // namespace lockstep::forecast
