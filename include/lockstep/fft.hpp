// Fourier transforms of one or two axes, batched, of real and complex data in f32 and f64. Written in the kernel
// language: bit-identical on the CPU, the interpreter and CUDA, for every thread count.
//
//   forward:  X[k] = sum over j of x[j] exp(-2 pi i j k / n)
//   inverse:  x[j] = sum over k of X[k] exp(+2 pi i j k / n),   times 1 / (n0 n1) where `scale_inverse`
//
// along each axis. Lengths with the factors 2, 3, 5 and 7 are transformed directly, all others by Bluestein's
// convolution. The root mean square error is at most 2 epsilon log2(n) relative to the result (docs/fft.md has
// measured errors).
//
// Layout: the slowest axis comes first: (batch, n0, n1) for two axes, (batch, n0) for one; the batch axis may be
// omitted if batch is 1. Complex data has a last axis of 2: real part, imaginary part. The half spectrum of a real
// field has n / 2 + 1 coefficients along the last transformed axis, k = 0 … n / 2, and all along the other axis, k =
// 0 … n - 1 (from n / 2 on these are the negative ones, k - n). Strides are those of the buffer, so a window of a
// larger buffer needs no copy.
//
// Source: Cooley and Tukey 1965; Stockham's ordering; Bluestein 1970.
#pragma once

#include <memory>

#include "lockstep/device.hpp"

namespace lockstep {

/// c2c: complex to complex. r2c: real field to half spectrum. c2r: half spectrum to real field.
enum class FftKind : uint8_t { c2c, r2c, c2r };
enum class FftDirection : uint8_t { forward, inverse };

struct FftOptions {
  FftKind kind = FftKind::c2c;
  Storage type = Storage::f32;  // of the real and imaginary parts: f32 or f64
  /// {n} or {n0, n1}: points of the field along the transformed axes, each from 1 to 2^28.
  Shape lengths;
  int64_t batch = 1;
  /// Truncated spectra: one number per axis. The spectrum contains only the coefficients with |k| <= kept[axis]. The
  /// half axis has kept + 1 of them, k = 0 … kept, with kept <= n / 2. Any other axis has 2 kept + 1, k = 0 … kept,
  /// -kept … -1, with 2 kept + 1 <= n. The forward transform drops all other coefficients, and the inverse transform
  /// takes them as 0, without a copy. Empty: whole spectra.
  Shape kept;
  /// The inverse divides by the number of points.
  bool scale_inverse = false;
  /// A variant of `primitives.fft` (docs/design/variants.md); empty: the fastest according to measurements. All
  /// variants give the same bits.
  std::string variant{};
};

/// A plan: tables, kernels and scratch memory for transforms of one shape on one device; a cheap handle with shared
/// ownership. Executions of one plan share the scratch memory and must not overlap: use one stream, or wait between
/// them. Executions can be recorded into graphs.
class Fft {
 public:
  Fft() = default;
  /// Allocates tables and scratch memory. Throws InputError for invalid lengths, batch, `kept` or types,
  /// UnsupportedError for f64 on a device without it (WebGPU), and DeviceError if memory is insufficient.
  Fft(const Device& device, const FftOptions& options);

  /// out = transform of in: forward for r2c, inverse for c2r, `direction` for c2c. `in` is unchanged, and `out` must not
  /// overlap it. c2r ignores the imaginary parts that the spectrum of a real field cannot have: those of k = 0 and
  /// k = n / 2 of the half axis, after the transform of the other axis. NaN or infinity in an input makes all dependent
  /// values NaN. Throws InputError for buffers of another shape or type.
  void execute(const Buffer& in, const Buffer& out, FftDirection direction, const Stream& stream = {}) const;
  /// The same in the only direction of r2c or c2r; forward for c2c.
  void execute(const Buffer& in, const Buffer& out, const Stream& stream = {}) const;

  const FftOptions& options() const;
  /// Shape of the field, with the batch axis: (batch, n0, n1), or (batch, n0, n1, 2) for c2c.
  Shape field_shape() const;
  /// Shape of the spectrum, with the batch axis: (batch, m0, m1, 2).
  Shape spectrum_shape() const;
  /// Kernels of one execution, for `emit` and tests.
  std::vector<Kernel> kernels() const;
  /// Nominal operations of one execution: 5/2 n log2 n per real transform of n points, 5 n log2 n per complex one.
  double flops() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace lockstep
