#include "flow/codec/kernels/residual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "device/capabilities.hpp"
#include "flow/codec/kernels/residual_kernels.hpp"
#include "flow/codec/rans/rans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace {

constexpr float kFinestShare = 1.0f / (1 << 20);  // of a coefficient's scale: f32 transforms resolve no more
constexpr float kBandStep = 1.0f / 256;           // of band amplitudes, in shares of the first frame's

}  // namespace

ResidualCoder::ResidualCoder(const Codec& codec, const Device& device, const ResidualSteps& steps)
    : codec_(codec), device_(device), steps_(steps) {
  const CodecPlan& plan = codec.plan();
  const CodecLayout layout = codec_layout(plan);
  std::vector<float> gain, step;
  for (int64_t j = 0; j < layout.size; ++j) {
    const double own = std::min(steps.mode / double(plan.scales[size_t(j)]), 1e30);
    step.push_back(j < layout.extras ? std::max(float(own), kFinestShare) : kBandStep);
    gain.push_back(1 / step.back());
  }
  gain_ = device.upload(gain);
  step_ = device.upload(step);
}

ResidualCoder::Numbers ResidualCoder::quantise(const Buffer& frames) const {
  const int64_t m = frames.shape()[0], size = codec_.latent_size();
  const Buffer latent = device_.allocate<f32>({m, size}), prediction = device_.allocate<f32>(frames.shape());
  Numbers n{device_.allocate<u32>({m, size}), device_.allocate<u32>(frames.shape()),
            device_.allocate<u32>({m})};
  codec_.encode(frames, latent);
  device_.launch(ResidualKernels::quantise(), {m, size}, latent, gain_, n.latent);
  device_.launch(ResidualKernels::dequantise(), {m, size}, n.latent, step_, latent);
  codec_.decode(latent, prediction);
  if (steps_.point > 0) {
    device_.clear(n.flags);
    device_.launch(ResidualKernels::bounded(), frames.shape(), frames, prediction, n.points, n.flags,
                   steps_.point, steps_.limit);
  } else {
    const std::vector<u32> all(size_t(m), 1u);
    device_.write(n.flags, all.data(), n.flags.bytes());
  }
  device_.launch(ResidualKernels::exact(), frames.shape(), frames, prediction, n.flags, n.points);
  return n;
}

void ResidualCoder::restore(const Numbers& n, const Buffer& latent, const Buffer& fields) const {
  device_.launch(ResidualKernels::dequantise(), n.latent.shape(), n.latent, step_, latent);
  if (!fields) return;
  codec_.decode(latent, fields);
  device_.launch(ResidualKernels::restore(), fields.shape(), n.points, n.flags, fields, steps_.point);
}

ResidualCoder::Block ResidualCoder::encode(const Buffer& frames, const Buffer& latent) const {
  const Numbers n = quantise(frames);
  if (latent) device_.launch(ResidualKernels::dequantise(), n.latent.shape(), n.latent, step_, latent);
  Block block;
  block.latent = rans_encode(device_, n.latent.reshape({1, n.latent.shape()[0], n.latent.shape()[1]}));
  block.residual = rans_encode(device_, n.points);
  for (const u32 flag : device_.download<u32>(n.flags)) block.exact.push_back(uint8_t(flag));
  return block;
}

void ResidualCoder::decode(const Block& block, int64_t frames, const Buffer& latent,
                           const Buffer& fields) const {
  const BoxGrid& grid = codec_.plan().options.grid;
  const int64_t size = codec_.latent_size();
  Numbers n;
  n.latent = device_.allocate<u32>({frames, size});
  rans_decode(device_, block.latent, n.latent.reshape({1, frames, size}), "latent_code");
  if (fields) {
    n.points = device_.allocate<u32>({frames, grid.ny, grid.nx});
    n.flags = device_.upload(std::vector<u32>(block.exact.begin(), block.exact.end()));
    rans_decode(device_, block.residual, n.points, "residual_code");
  }
  restore(n, latent, fields);
}

std::vector<Kernel> ResidualCoder::kernels() {
  return {ResidualKernels::quantise(), ResidualKernels::dequantise(), ResidualKernels::bounded(),
          ResidualKernels::exact(), ResidualKernels::restore()};
}

void expect_same_predictions(const Device& device) {
  if (!capabilities_of(device).ieee || device.numerics() != Numerics::exact)
    throw UnsupportedError(
        fmt::format("a bounded error on {}{}: its predictions have other bits than those of other devices",
                    device.info().name, device.numerics() != Numerics::exact ? " with fast numerics" : ""),
        "flow codec", "cpu, cuda or interp with exact numerics");
}

namespace reference {

namespace {

uint32_t in_order(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  return bits >> 31 != 0 ? ~bits : bits + 0x80000000u;
}
float sound_prediction(float p) { return std::abs(p) <= 3e38f ? p : 0.0f; }

}  // namespace

std::vector<uint32_t> residual_codes(std::span<const float> field, std::span<const float> prediction,
                                     float step, bool exact) {
  std::vector<uint32_t> codes;
  for (size_t k = 0; k < field.size(); ++k) {
    const float p = sound_prediction(prediction[k]);
    const int64_t q = exact ? int64_t(int32_t(in_order(field[k]) - in_order(p)))
                            : int64_t(std::nearbyint((field[k] - p) / step));
    codes.push_back(uint32_t(q < 0 ? -2 * q - 1 : 2 * q));
  }
  return codes;
}

std::vector<float> restored(std::span<const uint32_t> codes, std::span<const float> prediction, float step,
                            bool exact) {
  std::vector<float> field;
  for (size_t k = 0; k < codes.size(); ++k) {
    const float p = sound_prediction(prediction[k]);
    const int64_t q = codes[k] % 2 == 1 ? -int64_t(codes[k] / 2) - 1 : int64_t(codes[k] / 2);
    if (!exact) {
      field.push_back(std::fma(float(q), step, p));
      continue;
    }
    const uint32_t o = uint32_t(int64_t(in_order(p)) + q);
    field.push_back(std::bit_cast<float>(o >> 31 != 0 ? o - 0x80000000u : ~o));
  }
  return field;
}

}  // namespace reference

}  // namespace lockstep::flow
