// Windows over images inside kernels.
#pragma once

#include "lockstep/kernel/kernel.hpp"
#include "nn/layers/kernels.hpp"

namespace lockstep::nn {

/// f(window's row, place in the window) for all windows that hold a pixel, in the order of that place.
template <class F>
void for_windows_of(const Windows& w, const Val<i32>& pixel, F f) {
  const Val<i32> x = pixel % i32(w.width) + i32(w.padding);
  const Val<i32> y = pixel / i32(w.width) % i32(w.height) + i32(w.padding);
  const Val<i32> example = pixel / i32(w.width * w.height);
  for_(0, i32(w.window_height), [&](Val<i32> wy) {
    for_(0, i32(w.window_width), [&](Val<i32> wx) {
      const Val<i32> dx = x - wx, dy = y - wy;
      const Val<i32> ox = dx / i32(w.stride), oy = dy / i32(w.stride);
      if_(dx >= 0 && dy >= 0 && ox * i32(w.stride) == dx && oy * i32(w.stride) == dy &&
              ox < i32(w.out_width) && oy < i32(w.out_height),
          [&] {
            f((example * i32(w.out_height) + oy) * i32(w.out_width) + ox, wy * i32(w.window_width) + wx);
          });
    });
  });
}

}  // namespace lockstep::nn
