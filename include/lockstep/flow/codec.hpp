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
  classic,  // low-pass block, ternary mask, two band energies, anchors of the first frame
  v2,       // coefficients of one half plane by share of enstrophy, standardised; band amplitudes
};
enum class Decoder : uint8_t {
  mean,        // decodes the latent only: least error
  stochastic,  // adds random modes with the energies of the bands: better spectrum, larger error
};
/// How the decoder of classic uses the anchors. The published decoder writes them into the spectrum after computing
/// the field, so that they have no effect.
enum class Anchors : uint8_t { published, used };

std::span<const Choice<CodecKind>> choices(CodecKind);
std::span<const Choice<Decoder>> choices(Decoder);
std::span<const Choice<Anchors>> choices(Anchors);

struct CodecOptions {
  CodecKind kind = CodecKind::v2;
  BoxGrid grid;
  // classic
  double low = 8, middle = 12;  // low-pass |k| <= low; bands (low, middle] and beyond
  double threshold = 0.35;      // of the ternary mask, in shares of the largest residual; v2 too
  int box = 11;                 // points of the box filter, odd
  int64_t anchor_count = 128;   // at most the modes of the middle band
  Anchors anchors = Anchors::published;
  // v2
  double share =
      0.99;  // of a frame's enstrophy that the coefficients hold: the frame that the codec is made from
  /// Above 0: coefficients with |k| <= cut, regardless of their share.
  double cut = 0;
  uint64_t seed = 0;  // of the stochastic decoder
};

/// All data that a codec takes from its first frame; two codecs of one plan give the same bits.
struct CodecPlan {
  CodecOptions options;          // with `cut` set
  std::vector<float> scales;     // v2: of each number of the latent; all above 0
  std::vector<int32_t> anchors;  // classic: modes iy * nx + ix of the full plane
};

class Codec {
 public:
  /// `first` (ny, nx), f32, on the device, determines the cut and the scales, or the anchors; the host reads it once.
  /// Throws InputError for invalid options, a buffer of another shape and a first frame that is not finite.
  Codec(const Device& device, const CodecOptions& options, const Buffer& first);
  Codec(const Device& device, const CodecPlan& plan);

  const CodecPlan& plan() const;
  int64_t latent_size() const;
  /// frames (m, ny, nx) f32 to latent (m, D) f32, any m, and back, without copies to the host. `number` is the
  /// position of the first of these frames in its series, on which random phases depend.
  void encode(const Buffer& frames, const Buffer& latent) const;
  void decode(const Buffer& latent, const Buffer& frames, Decoder decoder = Decoder::mean,
              int64_t number = 0) const;

  std::vector<Kernel> kernels() const;
  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Encoded fields on the host, as in a file: latents, or, with a bound on the error, quantised latents and residuals
/// as coded bytes (src/flow/codec/rans/rans_format.hpp).
struct EncodedFields {
  CodecPlan plan;
  int64_t frames = 0;        // all members of all times
  int64_t members = 1;       // of each time: frames = times * members
  std::vector<double> time;  // of each time
  Array latent;              // (frames, D) f32; empty if they are coded
  /// With a bound: |decoded - field| <= max_error at every point; 0: the same bits.
  std::optional<double> max_error;
  double mode_step = 0;   // of quantised coefficients
  double point_step = 0;  // of residuals
  std::vector<uint8_t> latent_code, residual_code;
  std::vector<uint8_t> exact;  // of each frame: 1 where its residual holds bits
};

/// Encodes `fields` (frames, ny, nx), f32, with a codec of their first frame. The cut of v2 is the largest that
/// `share` requires in up to 16 frames from the first to the last. With `max_error` (v2 only) the cut and the steps
/// follow from the bound. Throws InputError for values that are not finite (with frame and point), other shapes and
/// negative bounds. Throws UnsupportedError with `max_error` on WebGPU and in fast numerics, whose decoders would
/// predict other values.
EncodedFields encode_fields(const Device& device, const CodecOptions& options, const Array& fields,
                            std::optional<double> max_error = {});
/// (frames, ny, nx), f32. Coded fields have one decoder, `mean`; damaged ones throw InputError.
Array decode_fields(const Device& device, const EncodedFields& encoded, Decoder decoder = Decoder::mean);
/// (frames, D), f32, coded or not.
Array latents_of(const Device& device, const EncodedFields& encoded);

/// A file of NumPy arrays: `header` (JSON), `time`, `latent` or `latent_code`, `residual_code`, `exact`, `scales` or
/// `anchors`, `checksum`. Written atomically; returns its size in bytes. Reading throws InputError for any file
/// that is not complete and valid.
int64_t write_encoded(const std::filesystem::path& path, const EncodedFields& encoded);
EncodedFields read_encoded(const std::filesystem::path& path);

struct EncodeRunOptions {
  std::filesystem::path input;   // a run (.nc, .npz with omega), or single fields (.npy, .mat)
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
  double spectrum_error =
      0;  // of the last frame: largest |log10 of the ratio| of energies of rings that hold 1e-12
  double least_kept =
      1;  // least share of the sum of squares kept in a frame: 1 - |decoded - field|^2 / |field|^2
  int64_t worst_frame = 0;
};
struct CodecRunResult {
  CodecPlan plan;
  int64_t frames = 0, latent_size = 0;
  int64_t bytes = 0;          // of the encoded file
  double bits_per_point = 0;  // of that file
  double ratio = 0;           // of the fields in f32 against it
  std::optional<double> bound;
  std::optional<CodecErrors> errors;
  std::vector<std::string> warnings;  // frames that lose far more than `share` allows
  std::filesystem::path file;
};
/// Stages "flow.encode" and "flow.decode" (the check of the file's own error; and `decode_run`'s work).
CodecRunResult encode_run(Context& context, const EncodeRunOptions& options);
CodecRunResult decode_run(Context& context, const DecodeRunOptions& options);
/// Members of the program's JSON, in one object.
std::string to_json(const CodecRunResult& result);

}  // namespace lockstep::flow
