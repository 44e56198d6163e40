// Sums of floats that depend on no order: exact, rounded once.
//
// A sum is a fixed-point number wide enough for every float of its type, in digits of 32 bits. Each digit has a word of
// 64 bits, so that 2^30 terms carry nothing; a term adds to two or three words by integer atomics. The last word has a bit
// each for NaN, infinity and -infinity among the terms. Rounding resolves the carries and rounds to nearest even: the
// result is the correctly rounded sum of the terms, and a sum without terms is 0.
#pragma once

#include "lockstep/device.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep::gradients {

/// Words of one sum of terms of a type.
int64_t sum_words(Type type);
/// In the kernel that is traced: adds a float to the sum of element `offset`; `sums` is a buffer of i64, atomic.
void add_exactly(uint32_t sums, ir::Id offset, ir::Id term);
/// In the kernel that is traced: the rounded sum of element `element`, i32, of such a buffer of rank 2, which is 0 afterwards.
ir::Id take_exactly(uint32_t sums, ir::Id element, Type type);
/// The kernel over `n` points that rounds sums (i64, n x sum_words; changed) into f32 or f64 (n).
const Kernel& rounding_kernel(Type type);

/// In the kernel that is traced: such a sum in an array of the lane. T is f32 or f64.
template <class T>
class LaneSum {
 public:
  LaneSum();
  void add(const Val<T>& term) const;
  /// The words change: once, at the end.
  Val<T> rounded() const;

 private:
  LocalArray<i64> words_;
};

}  // namespace lockstep::gradients
