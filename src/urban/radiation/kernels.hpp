// The device kernels of the radiation model. "Core" grids cover the core of a tile, "ground" grids also what its view
// of the ground reaches within the raster, "padded" grids that reach on all sides, also beyond the raster, where
// they hold 0: no ray of the ground view leaves them.
#pragma once

#include "lockstep/kernel/kernel.hpp"
#include "urban/radiation/step/scalars.hpp"

namespace lockstep::urban::kernels {

/// The table of a step, f32: kSlots scalars, then kCoverWords a row of the land cover, kPatchWords a patch, kWordWords
/// a word of states, kRunWords a run of patches.
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
  kBareInSun,  // longwave of bare ground above that of the air, in the sun and under plants
  kBareUnderPlant,
  kSunUp,      // 0: no patch of the sky gives light, no wall is sunlit
  kSideTotal,  // of all patches together: side, down
  kDownTotal,
  kClosed,     // 1: reflected longwave is accounted for
  kSideScale,  // four slots: of half-sky factors
  kSideScaleEnd = kSideScale + 3,
  kSlotsUsed
};
inline constexpr int kSlots = 64, kMostCovers = 16, kCoverWords = 4, kPatchWords = 8, kWordWords = 4,
                     kRunWords = 8;
inline constexpr int kFirstCover = kSlots, kFirstPatch = kFirstCover + kMostCovers * kCoverWords;
static_assert(kSlotsUsed <= kSlots);
/// Words of a row of the land cover: excess temperature, emissivity, albedo, 1 where the excess is the same in the shade.
/// Of a patch: what the open patch
/// gives to the whole sky's diffuse light and to the side; below which tan asvf a wall there is sunlit, and what it
/// then gives more than in the shade, short and long, to the side and down.
enum PatchWord : int { kLuminance, kSkyShort, kThreshold = 4, kLitShort, kLitLongSide, kLitLongDown };
/// Sums over the 16 patches of a word of states, all open: luminance, light to the side; and their highest threshold.
enum WordWord : int { kAllLuminance, kAllShort, kHighestThreshold };
/// Of a run of patches in one word of states that differ in their azimuth alone: the word, its first patch there and
/// their number; of an open patch: side, down, and both times its longwave.
enum RunWord : int { kRunWord, kRunFirst, kRunPatches, kRunSide, kRunDown, kRunLongSide, kRunLongDown };

/// The table of sides, f32: beam on planes that face east, south, west and north, then kSideRow words a patch: light,
/// longwave and downward weight of the open patch, below which tan asvf a wall there is sunlit; what it weighs on
/// each plane; longwave of a sunlit wall.
enum SideWord : int { kOpenShort, kOpenLong, kOpenDown, kLitBelow, kPlanes, kLitLong = kPlanes + 4 };
inline constexpr int kSideHead = 4, kSideRow = 12, kSideFluxes = 8;

/// Bits that a pixel of the ground adds to a ray's counts: pixel in the sun, pixel under plants that the sun shines on,
/// and whether a sunlit wall is next to it.
inline constexpr int kUnderPlantShift = 12;
inline constexpr u32 kInSun = 1u, kUnderPlant = 1u << kUnderPlantShift, kBesideSunlitWall = 1u << 31,
                     kCountMask = 0xfffu;

/// Offsets of a ray over the ground: of its near steps, then of the others, in rows of four that end with zeros.
inline constexpr int kOffsetRow = 4;
template <class Int>
Int offset_row(const Int& steps) {
  return (steps + (kOffsetRow - 1)) / kOffsetRow * kOffsetRow;
}

/// 16 bits a ray of the ground view, two rays a word (ray 2w in the low half): pixels up to the first building
/// or the raster's edge, whether that is the edge, whether the pixel's own wall faces the ray.
inline constexpr int kStopMask = 0xfff, kLeavesRaster = 0x1000, kOwnWall = 0x2000;
inline constexpr int kGroundWords = kGroundRays / 2;
/// Planes of the ground view: longwave and sunlit albedo, each of all directions, east, south, west, north;
/// the sunlit share.
/// Planes that never change: albedo of all directions, east, south, west, north; 1 − emissivity of the pixel's ground.
inline constexpr int kAlbedoPlanes = 6, kReflectsPlane = 5;
inline constexpr int kLupPlane = 0, kAlbedoPlane = 5, kNormPlane = 10, kGroundPlanes = 11;

/// Geometry of the ground view. (At<2> core, ground flat padded grid (1 ground, 0 building, −1 outside of the
/// raster), walls, aspect (core), i32 offsets (a row a ray), i32 sides (rays rows of branch, low, high as bits, 0), out
/// words (kGroundWords, rows, cols), i32 near, far, pitch)
const Kernel& ground_geometry();

/// Albedo of the ground and walls around a pixel, all in the sun: the first 5 of kAlbedoPlanes. (At<2> core, geometry, albedo flat
/// padded grid, offsets, table, out planes, i32 near, far, pitch, keep_edge)
const Kernel& ground_albedo();

/// Outputs at each ground pixel: light (kInSun …), and with covers the longwave above that of the air and the sunlit
/// albedo. (At<2> ground grid, shadow planes with heights, wall sun planes, walls, [cover i32,] table, out u32 light
/// [, lup, albedo]); the outputs are windows of padded grids.
const Kernel& ground_surface(bool plants, bool covers);

/// The ground view of a step. (At<2> core, geometry, light, [lup, albedo, cover (core),] offsets, table, out planes,
/// i32 near, far, pitch, keep_edge); light, lup, albedo flat padded grids.
const Kernel& ground_view(bool covers);

/// The same at night: air-warm ground, no light. (At<2> core, [cover (core),] table, out planes)
const Kernel& ground_night(bool covers);

/// All fluxes and the mean radiant temperature. (At<2> core, light (core), ground planes, albedo planes, sky
/// view (15 or 5, rows, cols), [states,] table, inout delay (5, rows, cols), out (8, rows, cols) in the order of
/// RadiationOutput [, i32 words, runs])
const Kernel& radiation(bool anisotropic, bool plants);

/// Fluxes on vertical planes that face east, south, west and north: shortwave, then longwave. Before `radiation` of the
/// same step. (At<2> core, light (core), ground planes, albedo planes, sky view, [states,] table, table of sides, delay,
/// out (8, rows, cols) [, i32 patches])
const Kernel& sides(bool anisotropic, bool plants);

/// Planes of the mean of a step's parts, in the order of RadiationOutput.
inline constexpr int kMeanPlanes = 9;
/// Adds a part to the mean of a step. (At<2> core, planes of `radiation`, ground planes, inout mean, i32 first, last, f32
/// share, kelvin); until the last part the first plane holds kelvin to the fourth power.
const Kernel& mean_of_step();
/// The same of `sides`. (At<2> pixel, planes, inout mean, i32 first, f32 share)
const Kernel& mean_of_sides();

}  // namespace lockstep::urban::kernels
