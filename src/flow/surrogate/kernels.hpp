#pragma once

#include "lockstep/device.hpp"

namespace lockstep::flow {

/// `from`, f32 or f64, in another of the two; itself where it is that already.
Buffer converted(const Device& device, const Buffer& from, Storage storage);

/// Kernels beyond those of primitives: of rollouts in one precision, of learning, of scores in f64.
std::vector<Kernel> surrogate_kernels(Storage storage);
std::vector<Kernel> learning_kernels();
std::vector<Kernel> scoring_kernels();

}  // namespace lockstep::flow
