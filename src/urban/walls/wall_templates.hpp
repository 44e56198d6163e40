// The rotated line and side templates by which wall pixels find the way their wall faces (Goodwin filter).
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::urban {

/// 180 pairs of square templates, one a degree, row by row.
struct WallTemplates {
  int side = 0;                ///< pixels of a side, odd
  std::vector<uint8_t> lines;  ///< 180 × side × side, 1 on the line
  std::vector<uint8_t> sides;  ///< 180 × side × side, 1 on one side of the line, 2 on the other

  /// Pixels at the raster's upper and left border that the filter leaves out; one more at the lower and right
  /// border.
  int margin() const { return (side + 1) / 2 - 1; }
};

inline constexpr int kWallAngles = 180;

/// Below, the templates would outgrow a lane's memory (9 m are then 181 pixels and more).
inline constexpr double kSmallestWallPixel = 0.05;

/// Side of the filter: 9 m in pixels, at least 3, odd. Throws InputError below the smallest pixel.
int wall_template_side(double pixel_size_m);

WallTemplates wall_templates(double pixel_size_m);

/// The direction (degrees clockwise from north, 0 ≤ d < 360) that a wall faces whose line matched at `angle`
/// (0..179), with the higher ground on the side marked 1 or 2.
double wall_direction(int angle, bool higher_on_side_one);

}  // namespace lockstep::urban
