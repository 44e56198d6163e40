// The device kernels of the radiation model. "Ground" grids cover the core of a tile and what its view of the
// ground reaches, (rows, cols) or flat with that pitch; "core" grids the core alone.
#pragma once

#include "lockstep/kernel/kernel.hpp"
#include "urban/radiation/scalars.hpp"

namespace lockstep::urban::kernels {

/// The table of a step, f32: kSlots scalars, then kCoverWords a row of the land cover, then kPatchWords a patch.
enum Slot : int {
  kAirLongwave,  // σ Ta⁴
  kBeamDown,     // beam on the horizontal plane
  kDiffuse,
  kGlobal,
  kHalfTanZenith,
  kWallAlbedo,
  kViewOpacity,  // 1 − ψ of the sky view
  kCanopy,       // ψ of shadows
  kSkyLongwave,  // of the whole sky with clouds
  kSideSkyLongwave,
  kWallLongwave,       // exitance of shaded walls
  kWallLitLongwave,    // of sunlit ones
  kWallReflects,       // 1 − ε of walls
  kReflectedRadiance,  // a patch's share of what it reflects: (1 − ε) / 2π
  kWallShadowOne,      // F_sh is 1
  kWallLitShortwave,   // radiances
  kWallShadedShortwave,
  kWallRadiance,  // longwave, shaded
  kCurvedBeam,    // beam on the curved side
  kFaceBeam,      // four of them: all faces together
  kWallSun,       // four slots: sine of the sun over walls in the east, south, west, north; below 0: away
  kWallSunEnd = kWallSun + 3,
  kAir,
  kWallExcess,
  kWallSigma,  // σ ε of walls
  kDelayWeight,
  kDelayFirst,
  kDelayKeep,
  kUpShare,
  kSideShare,
  kCurvedShare,
  kAbsorbShort,
  kAbsorbLong,
  kBodySigma,  // absorptance · σ
  kKelvin,
  kLowest,
  kHighest,
  kNearSteps,  // and their reciprocals
  kFarSteps,
  kPerNear,
  kPerNearWall,
  kPerFar,
  kPerFarWall,
  kWallExtra,  // longwave of a sunlit wall above that of the air
  kSigma,
  kAnyWall,  // 1: partly sunlit walls count
  kBareExcess,
  kBareEmissivity,
  kBareAlbedo,
  kSlotsUsed
};
inline constexpr int kSlots = 64, kMostCovers = 16, kCoverWords = 4, kPatchWords = 8;
inline constexpr int kFirstCover = kSlots, kFirstPatch = kFirstCover + kMostCovers * kCoverWords;
static_assert(kSlotsUsed <= kSlots);
/// Words of a row of the land cover: excess temperature, emissivity, albedo. Of a patch:
enum PatchWord : int { kLuminance, kSkyShort, kSkyLong, kLitLong, kThreshold, kSide, kDown };

/// 16 bits a ray of the ground view, two rays a word (ray 2w in the low half): pixels up to the first building
/// or the raster's edge, whether that is the edge, whether the pixel's own wall faces the ray.
inline constexpr int kStopMask = 0xfff, kLeavesRaster = 0x1000, kOwnWall = 0x2000;
inline constexpr int kGroundWords = kGroundRays / 2;
/// Planes of the ground view: longwave and sunlit albedo, each of all directions, east, south, west, north;
/// the sunlit share.
inline constexpr int kLupPlane = 0, kAlbedoPlane = 5, kNormPlane = 10, kGroundPlanes = 11;

/// Geometry of the ground view. (At<2> core, ground f32 (1 = ground, 0 = building), walls, aspect (ground
/// grids), i32 steps (rays · far rows of row, col), i32 sides (rays rows of branch, low, high as bits, 0), out
/// words (kGroundWords, rows, cols), i32 far, row, col: the core's corner in the ground grid)
const Kernel& ground_geometry();

/// Albedo of the ground and walls around a pixel, all in the sun: 5 planes. (At<2> core, geometry, albedo flat
/// ground grid, i32 offsets (rays · far), table, out planes, i32 near, far, row, col, pitch, i32 keep_edge)
const Kernel& ground_albedo();

/// What each ground pixel gives: sunlit share (sign bit: a sunlit wall stands beside), longwave above that of
/// the air, sunlit albedo (with covers). (At<2> ground grid, shadow planes with heights, wall sun planes,
/// walls, [cover i32,] table, out sun, lup [, albedo])
const Kernel& ground_surface(bool plants, bool covers);

/// The ground view of a step. (At<2> core, geometry, sun, lup, [albedo, cover,] offsets, table, out planes,
/// i32 near, far, row, col, pitch, keep_edge); flat ground grids, cover (ground grid).
const Kernel& ground_view(bool covers);

/// The same at night: air-warm ground, no light. (At<2> core, [cover,] table, out planes, i32 row, col)
const Kernel& ground_night(bool covers);

/// All fluxes and the mean radiant temperature. (At<2> core, sun (ground grid), ground planes, albedo planes, sky
/// view (15 or 5, rows, cols), [states,] table, inout delay (5, rows, cols), out (8, rows, cols) in the order of
/// RadiationOutput, i32 row, col [, words])
const Kernel& radiation(bool anisotropic, bool plants);

}  // namespace lockstep::urban::kernels
