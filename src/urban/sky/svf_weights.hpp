// Weights of sky patches in the cosine-weighted sky view factor (Johnson & Watson 1984).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "urban/sky/patches.hpp"

namespace lockstep::urban {

/// Weight of one patch of a band, in the whole sky and in a half sky.
struct PatchWeight {
  double whole;
  double half;
};

/// One entry a band. An annulus between lo and hi degrees weighs
/// 2π · sin(π/180)/(2π) · Σ_{k=lo+1, lo+2, … < hi+1} sin(π(2(91−k)−1)/180), shared evenly by its patches
/// (half skies: by ⌈count/2⌉ of them).
std::vector<PatchWeight> patch_weights(const SkyDivision& sky);

/// View factors of the half skies east, south, west and north on flat ground: 1 but for bands of odd counts.
std::array<double, 4> flat_half_skies(const SkyDivision& sky);

/// Added to the southern and western factors, as published: sin²(1°), one of the zenith's annuli. Of the
/// half skies only the eastern and northern contain them.
inline constexpr double kSouthWestCorrection = 3.0459e-4;

/// In single precision weights are whole multiples of 2^-31 and sums are u32: exact in any order, and
/// rounded to f32 once. A whole sky, at most 1.0042, fits.
inline constexpr double kWeightUnit = 0x1p-31;
uint32_t weight_units(double weight);

}  // namespace lockstep::urban
