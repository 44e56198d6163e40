// Elements of recurrent weights inside a kernel, as they are stored.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::forecast {

/// W: T, bf16, or u8 for e4m3, here without its row's scale.
template <class T, class W, int R, class... Index>
Val<T> element(const Grid<W, R>& u, const Index&... at) {
  if constexpr (std::is_same_v<W, uint8_t>) {
    const Val<u32> bits = u(at...), magnitude = bits & 0x7fu;
    const Val<f32> normal = bitcast<f32>((magnitude << 20u) + (120u << 23u));
    const Val<f32> value = select(magnitude < 8u, cast<f32>(magnitude) * 0x1p-9f, normal);
    return bitcast<f32>(bitcast<u32>(value) | (bits & 0x80u) << 24u);
  } else {
    return Val<T>(u(at...));
  }
}

template <class T, class W>
std::string weight_word() {
  return std::is_same_v<W, uint8_t> ? ".fp8" : std::is_same_v<W, T> ? "" : ".bf16";
}

}  // namespace lockstep::forecast
