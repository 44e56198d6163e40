// Whether a wall faces the sun, for the kernels of walls.
#pragma once

#include <numbers>

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::urban::kernels {

/// Of the direction that a wall faces, with the sun as sun_side() gives it. Branch 0: the sun is between east and west by
/// south; 1: by north.
inline Val<bool> faces_away(const Val<f32>& aspect_deg, const Param<i32>& branch, const Param<f32>& low,
                            const Param<f32>& high) {
  const Val<f32> direction = aspect_deg * float(std::numbers::pi / 180);
  const Val<bool> outside = (direction < low) | (direction >= high);
  const Val<bool> across = !((direction > low) | (direction <= high));
  return select(Val<i32>(branch) == 0, outside, across);
}

}  // namespace lockstep::urban::kernels
