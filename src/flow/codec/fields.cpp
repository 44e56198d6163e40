// Fields to coded form and back: the choice of cut and steps, blocks of frames.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "flow/codec/kernels/residual.hpp"
#include "flow/codec/narrow.hpp"
#include "flow/modes.hpp"
#include "lockstep/error.hpp"
#include "lockstep/fft.hpp"

namespace lockstep::flow {

namespace {

// Shares of the bound that the noise of quantised coefficients may have, if all of them are kept: the encoder
// takes the one that makes its first frame smallest.
constexpr double kNoiseShares[] = {0.2, 0.3, 0.45, 0.7, 1.1};
// The same for exact fields, in units of f32's rounding of their mean square root.
constexpr double kRoundings[] = {0.25, 1, 4, 16};
constexpr double kRounding = 1.0 / (1 << 23);
constexpr double kLargestPredicted = 1e28;

/// The fields in f32, and the bound for them in place of `max_error`.
Array checked_frames(const Array& given, const BoxGrid& grid, std::optional<double>& max_error) {
  constexpr auto kWhere = "flow codec";
  const Storage type = given.storage();
  if ((type != Storage::f32 && type != Storage::f64) || given.rank() != 3 || given.size(0) < 1 ||
      given.size(1) != grid.ny || given.size(2) != grid.nx)
    throw InputError(fmt::format("{} fields of shape {}", name(type), to_string(given.shape())), kWhere,
                     fmt::format("f32 or f64 of shape (frames, {}, {})", grid.ny, grid.nx));
  const NarrowFields fields = narrow(given.packed(), kWhere);
  if (max_error) max_error = bound_of_narrow(*max_error, fields.rounding, kWhere);
  return fields.frames;
}

Buffer upload_frames(const Device& device, const Array& fields, int64_t first, int64_t count) {
  return device.upload(fields.slice(0, first, count).packed());
}

FieldSizes sizes_of(const Array& fields) {
  FieldSizes s;
  for (const float v : fields.as<float>()) {
    s.peak = std::max(s.peak, std::abs(double(v)));
    s.rms += double(v) * double(v) / double(fields.elements());
  }
  s.rms = std::sqrt(s.rms);
  return s;
}

/// The step of points that holds a bound although sums round, or 0 where only bits can.
ResidualSteps point_steps(double bound, const FieldSizes& sizes) {
  ResidualSteps s;
  // A bound as f32, one smaller: what f32 subtracts as at most this is within the bound.
  const float limit = std::nextafter(std::min(float(bound), std::numeric_limits<float>::max()), 0.0f);
  s.limit = double(limit) <= bound ? limit : std::nextafter(limit, 0.0f);
  const double step = 2 * (double(s.limit) - 4 * kRounding * sizes.peak);
  if (step > 0.5 * double(s.limit) && step >= double(std::numeric_limits<float>::min()))
    s.point = double(float(step));
  return s;
}

/// Noise of variance n^2 in a field whose modes are all quantised: the step of a part of a coefficient.
double mode_step_of(double noise, const BoxGrid& grid) {
  return std::max(noise * std::sqrt(6 / double(grid.points())), 1e-37);
}

/// Modes beyond which the first frame has nothing that the largest step would show.
double cut_of_steps(const Device& device, const CodecOptions& options, const Buffer& first, double step) {
  CodecOptions whole = options;
  whole.share = 1;
  whole.cut = 1e9;
  const Codec codec(device, whole, first);
  const CodecLayout layout = codec_layout(codec.plan());
  double cut = 1;
  for (size_t m = 1; m < layout.modes.size(); ++m)
    if (double(codec.plan().scales[2 * m]) > 0.3 * step)
      cut = std::max(cut, plane_wavenumber(options.grid, layout.modes[m].iy, layout.modes[m].ix));
  return cut;
}

void append_block(std::vector<uint8_t>& to, const std::vector<uint8_t>& block) {
  if (block.size() > UINT32_MAX)
    throw InputError(fmt::format("{} bytes of coded numbers in one block", block.size()), "flow encode",
                     "less than 4 GiB: a coarser bound, or a smaller grid");
  for (int k = 0; k < 4; ++k) to.push_back(uint8_t(block.size() >> (8 * k)));
  to.insert(to.end(), block.begin(), block.end());
}
std::vector<uint8_t> take_block(std::span<const uint8_t>& from, const char* where) {
  const auto refuse = [&] {
    throw InputError("the coded data ends too early", where, "an undamaged file of flow encode");
  };
  if (from.size() < 4) refuse();
  size_t size = 0;
  for (size_t k = 0; k < 4; ++k) size |= size_t(from[k]) << (8 * k);
  if (size > from.size() - 4) refuse();
  const std::vector<uint8_t> block(from.begin() + 4, from.begin() + 4 + int64_t(size));
  from = from.subspan(4 + size);
  return block;
}

constexpr int64_t kFramesOfCut = 16;

/// v2's cut of a series: the largest that one of its frames requests, of up to 16 from the first to the last.
CodecOptions with_cut_of_series(const Device& device, const CodecOptions& options, const Array& fields) {
  CodecOptions cut = options;
  if (options.kind != CodecKind::v2 || options.cut > 0) return cut;
  check_codec(options);
  FftOptions transform;
  transform.kind = FftKind::r2c;
  transform.lengths = {options.grid.ny, options.grid.nx};
  const Fft fft(device, transform);
  const Buffer spectrum = device.allocate<f32>(fft.spectrum_shape());
  const int64_t frames = fields.size(0), asked = std::min(frames, kFramesOfCut);
  for (int64_t k = 0; k < asked; ++k) {
    const int64_t frame = asked == 1 ? 0 : k * (frames - 1) / (asked - 1);
    fft.execute(upload_frames(device, fields, frame, 1), spectrum);
    cut.cut = std::max(cut.cut, cut_of_share(options, device.download<f32>(spectrum)));
  }
  return cut;
}

ResidualSteps steps_of(const EncodedFields& e) { return {e.mode_step, e.point_step, 0}; }

/// f(block, first frame, frames) of each block of a coded file.
template <class F>
void each_block(const EncodedFields& e, F f) {
  std::span<const uint8_t> latent = e.latent_code, residual = e.residual_code;
  if (int64_t(e.exact.size()) != e.frames)
    throw InputError(fmt::format("{} frames' kinds of residual", e.exact.size()), "exact",
                     fmt::format("{}", e.frames));
  const int64_t step = block_frames(e.plan.options.grid);
  for (int64_t done = 0; done < e.frames; done += step) {
    const int64_t count = std::min(step, e.frames - done);
    ResidualCoder::Block block{take_block(latent, "latent_code"),
                               take_block(residual, "residual_code"),
                               {e.exact.begin() + done, e.exact.begin() + done + count}};
    f(block, done, count);
  }
  if (!latent.empty() || !residual.empty())
    throw InputError("coded data after the last frame", "flow codec", "an undamaged file of flow encode");
}

}  // namespace

int64_t block_frames(const BoxGrid& grid) { return std::max<int64_t>(1, kBlockNumbers / grid.points()); }

void check_bound(const CodecOptions& options, double bound) {
  const OptionList& all = schema_of<EncodeRunOptions>();
  if (options.kind != CodecKind::v2)
    throw all.error(
        {OptionError::Kind::useless, "max_error", "a bounded error with {codec} classic", "{codec} v2", ""});
  EncodeRunOptions checked;
  checked.max_error = bound;
  all.check(&checked);
}

BoundedCodec bounded_codec(const Device& device, const CodecOptions& options, const Buffer& given,
                           const FieldSizes& sizes, double bound) {
  expect_same_predictions(device);
  check_bound(options, bound);
  Buffer first = given;
  // Nothing is to be learned from transforms that overflow.
  if (sizes.peak > kLargestPredicted) {
    first = device.allocate(Storage::f32, given.shape());
    device.clear(first);
  }
  ResidualSteps steps = point_steps(bound, sizes);
  std::vector<double> noises;
  if (steps.point > 0)
    for (const double share : kNoiseShares) noises.push_back(share * bound);
  else
    for (const double unit : kRoundings) noises.push_back(unit * kRounding * std::max(sizes.rms, 1e-30));
  CodecOptions cut = options;
  if (cut.cut == 0)
    cut.cut = cut_of_steps(device, options, first, mode_step_of(noises.front(), options.grid));
  const Codec codec(device, cut, first);
  int64_t least = std::numeric_limits<int64_t>::max();
  double best = 0;
  for (const double noise : noises) {
    steps.mode = mode_step_of(noise, options.grid);
    const int64_t bytes = ResidualCoder(codec, device, steps).encode(given).bytes();
    if (bytes < least) least = bytes, best = steps.mode;
  }
  steps.mode = best;
  return {codec, steps};
}

EncodedFields encode_fields(const Device& device, const CodecOptions& options, const Array& given,
                            std::optional<double> max_error) {
  const Array fields = checked_frames(given, options.grid, max_error);
  EncodedFields e;
  e.frames = fields.size(0);
  e.max_error = max_error;
  const int64_t step = block_frames(options.grid);
  if (!max_error) {
    const Codec codec(device, with_cut_of_series(device, options, fields),
                      upload_frames(device, fields, 0, 1));
    e.plan = codec.plan();
    e.latent = Array(Storage::f32, {e.frames, codec.latent_size()});
    for (int64_t done = 0; done < e.frames; done += step) {
      const int64_t count = std::min(step, e.frames - done);
      const Buffer latent = device.allocate<f32>({count, codec.latent_size()});
      codec.encode(upload_frames(device, fields, done, count), latent);
      device.read(latent, e.latent.mutate<float>().data() + done * codec.latent_size(), latent.bytes());
    }
    if (const auto at = first_not_finite(e.latent))
      throw InputError(fmt::format("frame {} overflows as it is encoded", *at / e.latent.size(1)),
                       "flow codec", "smaller numbers, or a bound on the error");
    return e;
  }
  expect_same_predictions(device);
  check_bound(options, *max_error);
  const BoundedCodec chosen =
      bounded_codec(device, options, upload_frames(device, fields, 0, 1), sizes_of(fields), *max_error);
  e.plan = chosen.codec.plan();
  e.mode_step = chosen.steps.mode;
  e.point_step = chosen.steps.point;
  const ResidualCoder coder(chosen.codec, device, chosen.steps);
  for (int64_t done = 0; done < e.frames; done += step) {
    const auto block = coder.encode(upload_frames(device, fields, done, std::min(step, e.frames - done)));
    append_block(e.latent_code, block.latent);
    append_block(e.residual_code, block.residual);
    e.exact.insert(e.exact.end(), block.exact.begin(), block.exact.end());
  }
  return e;
}

Array decode_fields(const Device& device, const EncodedFields& e, Decoder decoder) {
  const BoxGrid& grid = e.plan.options.grid;
  const Codec codec(device, e.plan);
  Array fields(Storage::f32, {e.frames, grid.ny, grid.nx});
  float* to = fields.mutate<float>().data();
  if (!e.max_error) {
    if (e.latent.storage() != Storage::f32 || e.latent.shape() != Sizes{e.frames, codec.latent_size()})
      throw InputError(fmt::format("latents of shape {}", to_string(e.latent.shape())), "flow codec",
                       fmt::format("({}, {})", e.frames, codec.latent_size()));
    const int64_t step = block_frames(grid);
    for (int64_t done = 0; done < e.frames; done += step) {
      const int64_t count = std::min(step, e.frames - done);
      const Buffer decoded = device.allocate<f32>({count, grid.ny, grid.nx});
      codec.decode(device.upload(e.latent.slice(0, done, count).packed()), decoded, decoder, done);
      device.read(decoded, to + done * grid.points(), decoded.bytes());
    }
    return fields;
  }
  expect_same_predictions(device);
  if (decoder != Decoder::mean)
    throw InputError("the stochastic decoder for fields whose error is bounded", "flow codec",
                     "the decoder mean: fields with a bound on their error have no random part");
  const ResidualCoder coder(codec, device, steps_of(e));
  each_block(e, [&](const ResidualCoder::Block& block, int64_t done, int64_t count) {
    const Buffer latent = device.allocate<f32>({count, codec.latent_size()}),
                 decoded = device.allocate<f32>({count, grid.ny, grid.nx});
    coder.decode(block, count, latent, decoded);
    device.read(decoded, to + done * grid.points(), decoded.bytes());
  });
  return fields;
}

Array latents_of(const Device& device, const EncodedFields& e) {
  if (!e.max_error) return e.latent;
  const Codec codec(device, e.plan);
  const ResidualCoder coder(codec, device, steps_of(e));
  Array latents(Storage::f32, {e.frames, codec.latent_size()});
  float* to = latents.mutate<float>().data();
  each_block(e, [&](const ResidualCoder::Block& block, int64_t done, int64_t count) {
    const Buffer latent = device.allocate<f32>({count, codec.latent_size()});
    coder.decode(block, count, latent, {});
    device.read(latent, to + done * codec.latent_size(), latent.bytes());
  });
  return latents;
}

}  // namespace lockstep::flow
