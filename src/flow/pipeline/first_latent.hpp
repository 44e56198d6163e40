#pragma once

#include "lockstep/flow/codec.hpp"

namespace lockstep::flow {

/// Numbers of the latent of a run's first frame: the initial field without the modes that the simulation drops.
int64_t first_latent_size(const Device& cpu, const Model& model, const CodecOptions& options,
                          const Array& initial);

}  // namespace lockstep::flow
