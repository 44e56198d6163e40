// Errors of fields on the device: sums over modes, of which the host reads a few numbers a frame.
#pragma once

#include "lockstep/fft.hpp"
#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {

inline constexpr int kFieldSums = 6;          // |a|^2, |b|^2, Re a b*, |a - b|^2, |a|^2 / k^2, |b|^2 / k^2
inline constexpr int64_t kFieldChunk = 8192;  // modes of one group

class FieldComparer {
 public:
  FieldComparer(const Device& device, const BoxGrid& grid);
  /// `truth` (m, ny, nx) and `other` (m, ny, nx) or one field for all; f32. Adds what it read to `bytes_read`.
  FieldScore compare(const Buffer& truth, const Buffer& other);
  int64_t bytes_read = 0;
  int64_t bytes() const { return a_.bytes() + b_.bytes(); }
  /// Bytes that compare() reads of m frames.
  int64_t read_for(int64_t frames) const { return frames * chunks_ * kFieldSums * 4; }

  static const Kernel& kernel();

 private:
  Device device_;
  BoxGrid grid_;
  Fft fft_;
  Buffer a_, b_;
  int64_t chunks_ = 0;
};

/// Steps before `surrogate` is no nearer to the truth than `persistence`.
int64_t field_horizon(const FieldScore& surrogate, const FieldScore& persistence);
/// The mean of frames (m, ny, nx) as one field, on the device.
Buffer mean_frame(const Device& device, const Buffer& frames);

}  // namespace lockstep::flow
