// Fields as quantised latents and residuals, in blocks of frames.
#pragma once

#include "flow/codec/layout.hpp"
#include "lockstep/device.hpp"

namespace lockstep::flow {

inline constexpr int64_t kBlockNumbers = 1 << 22;  // points of the frames coded together

/// Steps of a bounded error: of coefficients and of points. `point` 0: bits.
struct ResidualSteps {
  double mode = 0, point = 0;
  float limit = 0;  // what a decoded value may differ by, as f32 subtracts
};

/// Kernels' buffers for blocks of fields of one codec.
class ResidualCoder {
 public:
  ResidualCoder(const Codec& codec, const Device& device, const ResidualSteps& steps);
  struct Block {
    std::vector<uint8_t> latent, residual, exact;
    int64_t bytes() const { return int64_t(latent.size() + residual.size()); }
  };
  /// Encodes frames (m, ny, nx) on the device. `latent` (m, D), where given, gets the latents as decode() restores them.
  Block encode(const Buffer& frames, const Buffer& latent = {}) const;
  /// `latent` (m, D) and `frames` (m, ny, nx), where given, are filled.
  void decode(const Block& block, int64_t frames, const Buffer& latent, const Buffer& fields) const;

  /// Kernels that the coder launches.
  static std::vector<Kernel> kernels();
  /// The two halves of `encode` without its host: numbers of latents and points, predictions; for cases.
  struct Numbers {
    Buffer latent, points, flags;
  };
  Numbers quantise(const Buffer& frames) const;
  void restore(const Numbers& numbers, const Buffer& latent, const Buffer& fields) const;

 private:
  Codec codec_;
  Device device_;
  ResidualSteps steps_;
  Buffer gain_, step_;
};

/// Largest value and root mean square over all frames.
struct FieldSizes {
  double peak = 0, rms = 0;
};
/// A codec of the first frame, and the steps that hold a bound on the error of all frames and make the first one smallest.
struct BoundedCodec {
  Codec codec;
  ResidualSteps steps;
};
/// `first` (1, ny, nx) on the device. Throws InputError for the classic codec and bounds below 0, and what
/// expect_same_predictions() throws.
BoundedCodec bounded_codec(const Device& device, const CodecOptions& options, const Buffer& first,
                           const FieldSizes& sizes, double bound);
/// Frames of such a grid that are coded together.
int64_t block_frames(const BoxGrid& grid);
/// Throws InputError for what bounded_codec() refuses of options.
void check_bound(const CodecOptions& options, double bound);

/// Throws UnsupportedError where another device would predict other values than this one.
void expect_same_predictions(const Device& device);

namespace reference {
/// The numbers of points of one frame: bounded by `step`, or of bits.
std::vector<uint32_t> residual_codes(std::span<const float> field, std::span<const float> prediction,
                                     float step, bool exact);
std::vector<float> restored(std::span<const uint32_t> codes, std::span<const float> prediction, float step,
                            bool exact);
}  // namespace reference

}  // namespace lockstep::flow
