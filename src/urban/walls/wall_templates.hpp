// The rotated line and side templates by which wall pixels find the way their wall faces (Goodwin filter).
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/urban.hpp"

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

/// Side of the filter in pixels, odd: 9 m, at least 3; or 9. Throws InputError below the smallest pixel.
int wall_template_side(double pixel_size_m, WallFilter filter);

WallTemplates wall_templates(int side);

/// The direction (degrees clockwise from north, 0 ≤ d < 360) that a wall faces whose line matched at `angle`
/// (0 ≤ angle < 180), with the higher ground on the side marked 1 or 2.
double wall_direction(double angle, bool higher_on_side_one);

/// A run of neighbouring angles, in degrees modulo 180: first ≤ last, first < 180.
struct AngleRun {
  int first = 0, last = 0;
  double middle() const { return (first + last) % 360 / 2.0; }
  /// The angle whose templates stand for the middle.
  int nearest() const { return (first + last) / 2 % kWallAngles; }
};

/// The run around the first angle whose count is the highest; 179 and 0 are neighbours.
AngleRun best_angles(const std::vector<int>& counts);

}  // namespace lockstep::urban
