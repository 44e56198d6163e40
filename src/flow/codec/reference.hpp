// The codec in plain C++, f64, one thread, without the engine: the oracle of its kernels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flow/codec/layout.hpp"

namespace lockstep::flow::reference {

/// +1, 0, -1 of each point after the sweeps; w (ny, nx).
std::vector<int> ternary_mask(const CodecOptions& options, std::span<const double> w);
/// The spectrum that plan_codec takes: the half spectrum of the first frame, or for classic of its residual.
std::vector<float> first_spectrum(const CodecOptions& options, std::span<const double> w);
/// The latent of one field.
std::vector<double> encode(const CodecPlan& plan, std::span<const double> w);
/// The field of one latent; `number` is the frame's.
std::vector<double> decode(const CodecPlan& plan, std::span<const double> latent, Decoder decoder,
                           int64_t number);

}  // namespace lockstep::flow::reference
