// Kernels of the layers, for their cases and for `emit`. Sizes are constants of a kernel.
#pragma once

#include <string>

#include "lockstep/device.hpp"
#include "lockstep/nn/network.hpp"
#include "nn/layers/layer.hpp"

namespace lockstep::nn {

/// Windows over images (height, width, channels).
struct Windows {
  int64_t height = 0, width = 0, channels = 0, window_height = 0, window_width = 0, stride = 1, padding = 0,
          out_height = 0, out_width = 0;
  std::string text() const;
  std::string key(size_t element) const;
};
/// Throws InputError, naming the layer, for an input that is no image and windows that do not fit.
Windows make_windows(const Shape& image, int64_t height, int64_t width, int64_t stride, int64_t padding,
                     const LayerPlace& place);

/// (pixels, channels) to (places, window * channels), and the adjoint.
template <class T>
Kernel patches_kernel(const Windows& w);
template <class T>
Kernel patches_adjoint_kernel(const Windows& w);

/// (pixels, channels) to the largest of each window and its place in it; and the adjoint.
template <class T>
Kernel max_pool_kernel(const Windows& w);
template <class T>
Kernel max_pool_adjoint_kernel(const Windows& w);

/// x, gain, bias, epsilon to y, the normalised x and 1 / sqrt(variance + epsilon), a row a lane.
template <class T>
const Kernel& layer_norm_kernel();
/// dy, gain, normalised x, 1 / sqrt(variance + epsilon) to dx and dy * normalised.
template <class T>
const Kernel& layer_norm_adjoint_kernel();

/// Rows of a table by whole numbers, with a row for each place.
template <class T>
const Kernel& embed_kernel(bool positions);
/// order[first[token] + equal ones before] = row: the rows of each token side by side, in their order.
const Kernel& token_order_kernel();
/// u32 to i32.
const Kernel& as_i32_kernel();

/// y = x kept / (1 - rate): element counters, the step and a key decide.
template <class T>
const Kernel& dropout_kernel();

/// Sizes of attention: of one example.
struct Heads {
  int64_t length = 0, width = 0, heads = 1;
  bool causal = true;
  int64_t depth() const { return width / heads; }
  std::string text() const;
};
/// The steps of attention over rows (examples * length) of q, k, v side by side: in the order of launches.
enum class AttentionStep : uint8_t { scores, softmax, mix, mix_adjoint, softmax_adjoint, inputs_adjoint };
template <class T>
Kernel attention_kernel(AttentionStep step, const Heads& heads);

/// Gates of one step of a GRU and their adjoints; `stage` 0 or 1 of reset_before, 0 of reset_after.
template <class T>
const Kernel& gru_kernel(GruForm form, int stage);
template <class T>
const Kernel& gru_adjoint_kernel(GruForm form, int stage);
/// States of the step before, 0 at the first; rows are steps of examples.
template <class T>
const Kernel& shift_steps_kernel();

}  // namespace lockstep::nn
