// The device kernels of the urban model. Buffers named "padded" are windows of a city with kPad pixels around
// them (PaddedShape), flat; "core" grids have the shape of the part that is computed.
#pragma once

#include "lockstep/kernel/kernel.hpp"
#include "lockstep/urban.hpp"

namespace lockstep::urban::kernels {

/// out[y][x] = max over k < 8 of in[y][x + k], ends clamped: the first half of an 8 × 8 maximum.
/// (At<2>, padded in (rows, pitch), padded out)
const Kernel& max_along_rows();
/// out[y][x] = max over k < 8 of in[y + k][x].
const Kernel& max_along_cols();
/// The same for 32 × 32 from 8 × 8: maxima of two grids at x, x + 8, x + 16, x + 24. (At<2>, in a, in b, out)
const Kernel& far_max_along_rows();
const Kernel& far_max_along_cols();  // (At<2>, in, out)

/// Scalars that give the place of a core in its window: padded index = (y + row + kPad) · pitch + x + col +
/// kPad. All ray kernels take (…, i32 row, i32 col, i32 pitch, f32 highest).

/// Planes of the shadow kernels' output, f32 (count, rows, cols): 1 and 0; then, with heights, up to where
/// buildings shade the pixel (m, absolute) and how far the shade of plants reaches above it (m).
struct ShadowPlanes {
  bool plants, heights;
  static constexpr int kSun = 0, kVegetation = 1, kBefore = 2;  // the last two with plants only
  constexpr int shade() const { return plants ? 3 : 1; }
  constexpr int depth() const { return 4; }
  constexpr int count() const { return (plants ? 3 : 1) + (heights ? (plants ? 2 : 1) : 0); }
};

/// Ray number 0 of the table from every core pixel.
/// (At<2>, dsm, near_dsm, far, [canopy, trunk, near_canopy,] table, out planes, scalars); the bracket with
/// plants only.
const Kernel& shadow(bool plants, bool heights);

/// Rows of the points of facades: pixel of the core, absolute height (m) and direction of the wall (degrees) by their bits,
/// then the positions of the sun seen past buildings and past plants too.
struct FacadeRows {
  static constexpr int kRow = 0, kCol = 1, kHeight = 2, kAspect = 3, kPastBuildings = 4, kPastPlants = 5;
  static constexpr int kCount = 6;
};

/// Adds one position of the sun, ray number 0 of the table, to the points of facades that it shines on.
/// (At<1> point, inputs as shadow, inout points (FacadeRows, n) of i32, i32 branch, f32 low, f32 high as wall_shade,
/// scalars)
const Kernel& facade_sun(bool plants);

/// Sky states of 16 patches in one word, from patch `first` (a multiple of 16) on, of `patches` in all.
/// (At<3> x, y, word; inputs as shadow; out words (words, rows, cols); i32 first, patches; scalars)
const Kernel& sky_states(bool plants);

/// View factors from packed states. (At<2>, words, table, [trunk,] out grids (5 or 15, rows, cols), i32
/// bands, scalars row, col, pitch) Table: a head of 4 words a band (first segment, end, whole and half weight
/// in units of kWeightUnit), then segments of 4 words: word of the states, masks of the patches in the whole
/// sky, east and south (bit 2k for patch k).
const Kernel& sky_view(bool plants);

/// Wall heights of a window into a padded buffer of its own.
/// (At<2> window, padded dsm, out padded walls, i32 pitch, f32 minimum, i32 first_row, last_row, first_col,
/// last_col): rows and columns of the window outside of first…last lie at the raster's border and have no
/// wall.
const Kernel& wall_height();

/// Wall aspects of a core. (At<2>, padded dsm, padded walls, table, out aspect, i32 row, col, pitch, i32
/// first_row, last_row, first_col, last_col, i32 north, south, west, east, f32 pixel size). Table: per angle
/// the packed bits of the line, of side one and of side two.
Kernel wall_aspect(int side, WallTies ties);

/// Words that hold side × side bits.
constexpr int template_words(int side) { return (side * side + 31) / 32; }

/// Sunlit and shaded height of walls. (At<2>, shadow planes with heights, padded dsm, walls, aspect,
/// out planes sun and shadow (2, rows, cols), i32 branch, f32 low, f32 high, scalars row, col, pitch)
const Kernel& wall_shade(bool plants);

}  // namespace lockstep::urban::kernels
