// Fourier transforms of one or two axes, batched, of real and complex data in f32 and f64. Written in the
// kernel language: CPU, interpreter and CUDA give the same bits, for every thread count.
//
//   forward:  X[k] = sum over j of x[j] exp(-2 pi i j k / n)
//   inverse:  x[j] = sum over k of X[k] exp(+2 pi i j k / n),   times 1 / (n0 n1) where `scale_inverse`
//
// along each axis. Any length: those made of the factors 2, 3, 5 and 7 directly, the others by Bluestein's
// convolution. Root mean square error at most 2 epsilon log2(n) of the result's (docs/fft.md has the measured
// ones).
//
// Layout. The slowest axis comes first: (batch, n0, n1) for two axes, (batch, n0) for one; the batch axis may be
// left out where batch is 1. Complex data has one more axis of 2 behind: real part, imaginary part. The half
// spectrum of a real field has n / 2 + 1 coefficients along the last transformed axis, k = 0 … n / 2, and all
// along the other, k = 0 … n - 1 (those from n / 2 on are the negative ones, k - n). Strides and distances
// are the buffer's own: a window of a larger buffer is transformed where it lies.
//
// Source: Cooley and Tukey 1965; Stockham's ordering; Bluestein 1970.
#pragma once

#include <memory>

#include "lockstep/device.hpp"

namespace lockstep {

/// complex to complex; real to its half spectrum; half spectrum to real.
enum class FftKind : uint8_t { c2c, r2c, c2r };
enum class FftDirection : uint8_t { forward, inverse };

struct FftOptions {
  FftKind kind = FftKind::c2c;
  Storage type = Storage::f32;  // of the real and imaginary parts: f32 or f64
  /// {n} or {n0, n1}: points of the field along the transformed axes, each at least 1.
  Shape lengths;
  int64_t batch = 1;
  /// Truncated spectra: one number per axis; the spectrum holds the coefficients with |k| <= kept[axis] only.
  /// A half axis then has kept + 1 of them, k = 0 … kept (kept <= n / 2); another axis 2 kept + 1,
  /// k = 0 … kept, -kept … -1 (2 kept + 1 <= n). What a field has beyond is dropped on the way to the
  /// spectrum and taken as 0 on the way back; neither costs a copy. Empty: whole spectra.
  Shape kept;
  /// The inverse gives the field divided by the number of its points.
  bool scale_inverse = false;
  /// A variant of `primitives.fft` (docs/design/variants.md); empty: the fastest, as measured. All of them give the same bits.
  std::string variant{};
};

/// A plan: tables, kernels and scratch memory for transforms of one shape on one device; a cheap handle with
/// shared ownership. Two executions of one plan may not overlap in time (they share the scratch memory): on
/// one stream, or waited for. Executions can be recorded into graphs.
class Fft {
 public:
  Fft() = default;
  /// Makes tables and scratch memory. Throws InputError for lengths, batch or `kept` out of range and other
  /// types, UnsupportedError for f64 on a device that has none (WebGPU), DeviceError where memory is short.
  Fft(const Device& device, const FftOptions& options);

  /// out = transform of in. r2c goes forward and c2r inverse; c2c goes as `direction` says. `in` stays as it
  /// is; `out` shares no element with it. The imaginary parts that the spectrum of a real field has not (k = 0
  /// and k = n / 2 of the half axis, after the transform of the other axis) are taken as 0 by c2r. A NaN or an
  /// infinity makes NaN of all values that depend on it. Throws InputError for buffers of other shape or type.
  void execute(const Buffer& in, const Buffer& out, FftDirection direction, const Stream& stream = {}) const;
  /// The same in the only direction that r2c or c2r has; forward for c2c.
  void execute(const Buffer& in, const Buffer& out, const Stream& stream = {}) const;

  const FftOptions& options() const;
  /// Shape of the field, with the batch axis: (batch, n0, n1), or (batch, n0, n1, 2) for c2c.
  Shape field_shape() const;
  /// Shape of the spectrum, with the batch axis: (batch, m0, m1, 2).
  Shape spectrum_shape() const;
  /// Kernels of one execution, for `emit` and tests.
  std::vector<Kernel> kernels() const;
  /// 5/2 n log2 n per real transform of n points, 5 n log2 n per complex one: what the field counts.
  double flops() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace lockstep
