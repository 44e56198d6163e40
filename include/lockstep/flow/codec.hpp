// Vorticity fields as short vectors (latents) on the device, or as compressed files with a bound on the error.
//
//   const flow::Codec codec(device, {.grid = {256, 256}, .share = 0.99}, first);  // first: (ny, nx) on the device
//   const Buffer latent = device.allocate<f32>({frames, codec.latent_size()});
//   codec.encode(fields, latent);  // fields: (frames, ny, nx)
//   codec.decode(latent, fields, flow::Decoder::mean);
//
// Wavenumbers are in units of 2 pi / max(Lx, Ly). Mathematics, the order of a latent and sources: docs/flow.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/array.hpp"
#include "lockstep/context.hpp"
#include "lockstep/device.hpp"
#include "lockstep/flow.hpp"

namespace lockstep::flow {

enum class CodecKind : uint8_t {
  classic,  // low-pass modes, ternary mask, energies of two bands, anchors from the first frame
  v2,       // standardised coefficients of one half plane up to a share of the enstrophy, amplitudes of bands
};
enum class Decoder : uint8_t {
  mean,        // decodes the latent only: smallest error
  stochastic,  // adds random modes with the energies of the bands: better spectrum, larger error
};
/// Use of the anchors by the decoder of classic. The published decoder writes them to the spectrum after it has computed
/// the field, so they have no effect.
enum class Anchors : uint8_t { published, used };

std::span<const Choice<CodecKind>> choices(CodecKind);
std::span<const Choice<Decoder>> choices(Decoder);
std::span<const Choice<Anchors>> choices(Anchors);

struct CodecOptions {
  CodecKind kind = CodecKind::v2;
  BoxGrid grid;
  // classic
  double low = 8, middle = 12;  // low-pass |k| <= low; bands (low, middle] and beyond
  double threshold = 0.35;      // of the ternary mask, relative to the largest residual; also used by v2
  int box = 11;                 // width of the box filter in points, odd
  int64_t anchor_count = 128;   // at most the number of modes of the middle band
  Anchors anchors = Anchors::published;
  // v2
  double share = 0.99;  // of the enstrophy of the first frame that the coefficients contain
  /// Above 0: use the coefficients with |k| <= cut instead of `share`.
  double cut = 0;
  uint64_t seed = 0;  // of the stochastic decoder
};

/// The data that a codec derives from its first frame. Two codecs with the same plan give the same bits.
struct CodecPlan {
  CodecOptions options;          // with `cut` set
  std::vector<float> scales;     // v2: scale of each number of the latent, above 0
  std::vector<int32_t> anchors;  // classic: modes, as iy * nx + ix in the full plane
};

class Codec {
 public:
  /// `first` (ny, nx), f32, on the device, determines the cut and the scales (v2) or the anchors (classic). The host
  /// reads it once. Throws InputError for invalid options, a buffer of another shape and a first frame that is not
  /// finite.
  Codec(const Device& device, const CodecOptions& options, const Buffer& first);
  Codec(const Device& device, const CodecPlan& plan);

  const CodecPlan& plan() const;
  int64_t latent_size() const;
  /// Encodes frames (m, ny, nx), f32, to latents (m, D), f32, and decodes them, for any m and without copies to the host.
  /// `number` is the position of the first of these frames in its series; random phases depend on it.
  void encode(const Buffer& frames, const Buffer& latent) const;
  void decode(const Buffer& latent, const Buffer& frames, Decoder decoder = Decoder::mean,
              int64_t number = 0) const;

  std::vector<Kernel> kernels() const;
  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Encoded fields on the host, with the contents of a file. Without a bound on the error: latents. With a bound:
/// quantised latents and residuals as entropy-coded bytes (src/flow/codec/rans/rans_format.hpp).
struct EncodedFields {
  CodecPlan plan;
  int64_t frames = 0;        // number of times * members
  int64_t members = 1;       // frames of each time
  std::vector<double> time;  // of each time
  Array latent;              // (frames, D) f32; empty if they are coded
  /// The bound: |decoded - field| <= max_error at every point; 0: bit-identical.
  std::optional<double> max_error;
  double mode_step = 0;   // quantisation step of the coefficients
  double point_step = 0;  // quantisation step of the residuals
  std::vector<uint8_t> latent_code, residual_code;
  std::vector<uint8_t>
      exact;  // for each frame: 1 if its residual contains bits instead of quantised differences
};

/// Encodes `fields` (frames, ny, nx), f32 or f64, with a codec of their first frame. f64 is rounded to f32 first, which
/// counts towards `max_error`. The cut of v2 is the largest that `share` requires in up to 16 frames, from the first to
/// the last. With `max_error` (v2 only), the cut and the steps follow from the bound. Throws InputError for values that
/// are not finite, naming frame and point, for other shapes and for negative bounds. With `max_error`, throws
/// UnsupportedError on WebGPU and in fast numerics, because their predictions have other bits.
EncodedFields encode_fields(const Device& device, const CodecOptions& options, const Array& fields,
                            std::optional<double> max_error = {});
/// The decoded fields (frames, ny, nx), f32. Fields with a bound have the decoder `mean` only. Throws InputError for
/// damaged data.
Array decode_fields(const Device& device, const EncodedFields& encoded, Decoder decoder = Decoder::mean);
/// The latents (frames, D), f32, with or without a bound.
Array latents_of(const Device& device, const EncodedFields& encoded);

/// Writes and reads a file (.npz) with the arrays `header` (JSON), `time`, `latent` or `latent_code`, `residual_code`,
/// `exact`, `scales` or `anchors`, and `checksum`. Writing is atomic and returns the size in bytes. Reading throws
/// InputError for a file that is incomplete or damaged.
int64_t write_encoded(const std::filesystem::path& path, const EncodedFields& encoded);
EncodedFields read_encoded(const std::filesystem::path& path);

struct EncodeRunOptions {
  std::filesystem::path input;   // a run (.nc, .npz with omega), or fields alone (.npy, .mat)
  std::filesystem::path output;  // .npz
  CodecOptions codec;            // the grid is the file's
  std::optional<double> max_error;
};
struct DecodeRunOptions {
  std::filesystem::path input;   // .npz of an encoded run
  std::filesystem::path output;  // .nc or .npz
  Decoder decoder = Decoder::mean;
  /// The fields that were encoded, for comparison; empty: none.
  std::filesystem::path original;
};
void describe(Schema<CodecOptions>& schema);
void describe(Schema<EncodeRunOptions>& schema);
void describe(Schema<DecodeRunOptions>& schema);

/// Differences between decoded and original fields over all frames.
struct CodecErrors {
  double relative_l2 = 0, max_error = 0;
  double psnr = 0;  // dB, relative to the range of the fields; infinity if they are equal
  /// Of the last frame: largest |log10(decoded / original)| over the energies of rings with at least 1e-12 of the sum.
  double spectrum_error = 0;
  double least_kept = 1;    // smallest value of 1 - |decoded - field|^2 / |field|^2 over the frames
  int64_t worst_frame = 0;  // the frame with least_kept
};
struct CodecRunResult {
  CodecPlan plan;
  int64_t frames = 0, latent_size = 0;
  int64_t bytes = 0;          // of the encoded file
  double bits_per_point = 0;  // of that file
  double ratio = 0;           // compression ratio: bytes of the fields in f32 divided by those of the file
  std::optional<double> bound;
  std::optional<CodecErrors> errors;
  std::vector<std::string> warnings;  // a frame that loses far more enstrophy than `share` allows
  std::filesystem::path file;
};
/// Stages "flow.encode" and, for the error of the encoded file and for decode_run(), "flow.decode". Throw InputError for
/// invalid files and options.
CodecRunResult encode_run(Context& context, const EncodeRunOptions& options);
CodecRunResult decode_run(Context& context, const DecodeRunOptions& options);
/// Members of the program's JSON, in one object.
std::string to_json(const CodecRunResult& result);

}  // namespace lockstep::flow
