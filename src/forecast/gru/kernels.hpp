// What stands between the matrix products of a GRU sequence: a lane for an element of (B, D). g holds the gates of one
// step side by side, z, r, n of D columns each.
#pragma once

#include "lockstep/forecast/rollout.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep::forecast {

template <class T>
struct GruKernels {
  /// reset_before. x = x W, b; g = h U_zr; h → z, r, r h.
  Kernel gates;
  /// reset_before. x, b, c = (r h) U_n, z, h → n, next h.
  Kernel candidate;
  /// reset_after. x, b, g = h U, rb, h → z, r, n, a = h U_n + rb_n, next h.
  Kernel step;
  /// reset_before. d = incoming + carried gradient of the next h; z, n, h → gates' gradients of z and n (in d_g), the
  /// direct part of the gradient of h (in carried).
  Kernel back;
  /// reset_before. p = gradient of r h; r, h → gradient of r (in d_g); carried += r p.
  Kernel back_reset;
  /// reset_after. As back, with gradients of all gates in d_g and those of h U in d_u.
  Kernel back_step;
  /// carried += p.
  Kernel add;
};
template <class T>
const GruKernels<T>& gru_kernels();

}  // namespace lockstep::forecast
