// Errors of fields on the device: sums over modes, of which the host reads a few numbers a frame.
#pragma once

#include "lockstep/fft.hpp"
#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {

// |a|^2, |b|^2, Re a b*, |a - b|^2, |a|^2 / k^2, |b|^2 / k^2, and with a' = a - mean, b' = b - mean: |a'|^2, |b'|^2, Re a' b'*
inline constexpr int kFieldSums = 9;
inline constexpr int64_t kFieldChunk = 8192;  // modes of one group
inline constexpr int kPastFields = 3;

/// Compares fields with those of the simulation, and with what costs nothing: the mean of the training frames and polynomials
/// through the last of them (order 0: persistence).
class FieldComparer {
 public:
  FieldComparer(const Device& device, const BoxGrid& grid);
  /// The last training frames (m, ny, nx), of which up to three count, and the mean (1, ny, nx) of all of them.
  void set_past(const Buffer& frames, const Buffer& mean);
  /// `truth` (m, ny, nx) and `other` of that shape; f32. Adds what it read to `bytes_read`.
  FieldScore compare(const Buffer& truth, const Buffer& other);
  /// The same, and into `scores` the errors of what costs nothing; orders that lack frames stay empty.
  FieldScore compare(const Buffer& truth, const Buffer& other, FieldScores& scores);
  int64_t bytes_read = 0;
  int64_t bytes() const { return a_.bytes() + b_.bytes() + past_.bytes() + mean_.bytes(); }
  /// 1 / root mean square of the vorticity, of the last frame of `truth`.
  double turnover_time() const { return turnover_time_; }

  static const Kernel& kernel();
  static const Kernel& extrapolation_kernel();

 private:
  Buffer flat(const Buffer& spectrum) const;
  void sum(const Buffer& other, const Buffer& sums) const;
  FieldScore score_of(const Buffer& sums);

  Device device_;
  BoxGrid grid_;
  Fft fft_;
  Buffer a_, b_, past_, mean_;
  int64_t chunks_ = 0, past_frames_ = 0;
  double turnover_time_ = 0;
};

/// Frames in which the surrogate has skill: its error is below that of the zero field and of everything that costs nothing,
/// and its anomaly correlation is at least 0.6, the usual limit of weather forecasts.
int64_t field_horizon(const FieldScores& scores);
/// The mean of frames (m, ny, nx) as one field, on the device.
Buffer mean_frame(const Device& device, const Buffer& frames);

}  // namespace lockstep::flow
