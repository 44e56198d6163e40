// The division of the sky into bands and patches (Tregenza 145 and its finer relatives).
#pragma once

#include <vector>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// A ring of equal patches around the sky. Patch j has azimuth start_deg + j · 360 / count.
struct SkyBand {
  double altitude_deg;    ///< of the patch centres
  int count;              ///< patches in the ring
  double start_deg;       ///< azimuth of the first
  double lower_edge_deg;  ///< the annulus that the ring stands for
  double upper_edge_deg;
  int first;  ///< index of its first patch
};

struct SkyDivision {
  std::vector<SkyBand> bands;      ///< from the horizon up; the last is the zenith patch
  std::vector<Direction> patches;  ///< centres, band by band
  std::vector<int> band_of_patch;
};

SkyDivision sky_division(SkyPatches kind, AnnulusEdges edges);

/// Number of patches: 145, 153, 305 or 609.
int patch_count(SkyPatches kind);

/// From a number as users write it (145, 153, 305 or 306, 609 or 612). Throws InputError.
SkyPatches patches_from_count(int count);

/// The sectors of the directional view factors, in the order of kSkyViewNames.
enum class Sector { whole, east, south, west, north };
inline constexpr int kSectors = 5;

/// East [0,180), south [90,270), west [180,360), north [270,360) and [0,90).
bool in_sector(double azimuth_deg, Sector sector);

}  // namespace lockstep::urban
