#pragma once

#include "lockstep/kernel.hpp"

namespace lockstep::flow {

/// Whole numbers of this size have room in f32.
inline constexpr float kMostCode = 8388608;

/// Quantisation of latents and of what they leave of a field. Signed numbers q are coded as 2q, -2q - 1.
struct ResidualKernels {
  static const Kernel& quantise();    // latents to whole numbers
  static const Kernel& dequantise();  // and back
  static const Kernel& bounded();     // residual in steps; flags frames that it cannot hold
  static const Kernel& exact();       // of flagged frames: the distance of the bits
  static const Kernel& restore();     // prediction to field
};

}  // namespace lockstep::flow
