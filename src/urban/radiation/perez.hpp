// Luminance of the sky by Perez, Seals & Michalsky (1993), and what a patch of sky weighs.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "urban/radiation/constants.hpp"
#include "urban/sky/patches.hpp"

namespace lockstep::urban {

struct PerezInput {
  double sun_altitude_deg = 0, sun_azimuth_deg = 0;
  double diffuse_w_m2 = 0;  ///< horizontal
  double beam_w_m2 = 0;     ///< normal
  int day_of_year = 1;
};

/// Sky clearness ε and brightness Δ.
struct PerezSky {
  double clearness, brightness;
  int bin;  ///< 0 … 7
};
PerezSky perez_sky(const PerezInput& input, PerezFormula formula);

/// Relative luminance of each patch, sum 1. `guards`: an even sky below 3° of sun, under 10 W/m² and where the
/// formula gives a negative luminance.
std::vector<double> perez_luminance(std::span<const Direction> patches, const PerezInput& input,
                                    PerezFormula formula, bool guards);

/// Solid angle (sr) of a patch, one entry a band; 2π in all.
std::vector<double> band_solid_angles(const SkyDivision& sky);

/// Weights of a patch: solid angle times the cosine to the horizontal, the cosine of its altitude, and the cosines to
/// vertical planes that face east, south, west, north (sr).
struct PatchCosines {
  double down, side;
  std::array<double, 4> faces;
};
/// `exact`: integrals over the patch, in all π, π²/2 and π/2 a face; else solid angle times the centre's cosines.
std::vector<PatchCosines> patch_cosines(const SkyDivision& sky, bool exact);

}  // namespace lockstep::urban
