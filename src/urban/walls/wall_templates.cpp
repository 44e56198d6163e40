#include "urban/walls/wall_templates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

using Square = std::vector<double>;

/// Sine of 0…90°, reduced to 45° so that sin 30° and cos 60° round alike.
double sine_of_acute(int degrees) {
  constexpr double radian = std::numbers::pi / 180;
  return degrees <= 45 ? std::sin(degrees * radian) : std::cos((90 - degrees) * radian);
}

/// Where the pixels of a square come from that is turned by `degrees`. Half-way cases decide single pixels of
/// the templates; this order of operations (an affine map with its offset taken out) decides them as
/// published.
struct Rotation {
  double c, s, row_offset, col_offset;

  Rotation(int side, int degrees) {
    c = degrees > 90 ? -sine_of_acute(degrees - 90) : sine_of_acute(90 - degrees);
    s = sine_of_acute(degrees > 90 ? 180 - degrees : degrees);
    const double centre = (side - 1) / 2.0;
    row_offset = centre - (c * centre + s * centre);
    col_offset = centre - (-s * centre + c * centre);
  }
};

struct Source {
  double row, col;
};
Source source_of(int row, int col, const Rotation& r) {
  return {r.row_offset + r.c * row + r.s * col, r.col_offset - r.s * row + r.c * col};
}

double clamped(const Square& square, int side, int row, int col) {
  return square[static_cast<size_t>(std::clamp(row, 0, side - 1) * side + std::clamp(col, 0, side - 1))];
}

double bilinear(const Square& square, int side, Source at) {
  const double last = side - 1;
  at.row = std::clamp(at.row, 0.0, last);
  at.col = std::clamp(at.col, 0.0, last);
  const int r = static_cast<int>(std::floor(at.row)), c = static_cast<int>(std::floor(at.col));
  const double y = at.row - r, x = at.col - c;
  return clamped(square, side, r, c) * (1 - y) * (1 - x) + clamped(square, side, r, c + 1) * (1 - y) * x +
         clamped(square, side, r + 1, c) * y * (1 - x) + clamped(square, side, r + 1, c + 1) * y * x;
}

double nearest(const Square& square, int side, Source at) {
  return clamped(square, side, static_cast<int>(std::floor(at.row + 0.5)),
                 static_cast<int>(std::floor(at.col + 0.5)));
}

}  // namespace

int wall_template_side(double pixel_size_m, WallFilter filter) {
  if (!(pixel_size_m >= kSmallestWallPixel))
    throw InputError(fmt::format("pixels of {} m", pixel_size_m), "walls",
                     fmt::format("pixels of at least {} m", kSmallestWallPixel));
  if (filter == WallFilter::pixels) return 9;
  const int side = static_cast<int>(std::floor((1 / pixel_size_m + 1e-10) * 9));
  if (side <= 2) return 3;
  return side % 2 == 0 ? side + 1 : side;
}

WallTemplates wall_templates(int side) {
  WallTemplates templates;
  const int n = templates.side = side;
  const size_t area = static_cast<size_t>(n) * static_cast<size_t>(n);
  const int middle = n / 2;
  Square line(area, 0.0), halves(area, 0.0);
  for (int k = 0; k < n; ++k) {
    line[static_cast<size_t>(k * n + middle)] = 1;
    if (k != middle) halves[static_cast<size_t>(middle * n + k)] = k < middle ? 1 : 2;
  }
  templates.lines.resize(kWallAngles * area);
  templates.sides.resize(kWallAngles * area);
  for (int h = 0; h < kWallAngles; ++h) {
    uint8_t* const lines = &templates.lines[static_cast<size_t>(h) * area];
    uint8_t* const sides = &templates.sides[static_cast<size_t>(h) * area];
    const Rotation rotation(n, h);
    for (int row = 0; row < n; ++row)
      for (int col = 0; col < n; ++col) {
        const Source at = source_of(row, col, rotation);
        const size_t k = static_cast<size_t>(row * n + col);
        lines[k] = static_cast<uint8_t>(std::nearbyint(bilinear(line, n, at)));
        sides[k] = static_cast<uint8_t>(nearest(halves, n, at));
        if ((h == 30 || h == 150) && col == n - 1) sides[k] = 0;
      }
    // A half-way case that rounding error decides: the published grids, of nine pixels, have it on the line.
    if (h == 60 && n == 9) lines[middle * n + middle - 1] = 1;
    if (270 - h == 225) lines[0] = lines[area - 1] = 1;
    if (270 - h == 135) lines[n - 1] = lines[area - static_cast<size_t>(n)] = 1;
  }
  return templates;
}

double wall_direction(double angle, bool higher_on_side_one) {
  const double direction = 270 - angle - (higher_on_side_one ? 180 : 0);
  return direction < 0 ? direction + 360 : direction;
}

AngleRun best_angles(const std::vector<int>& counts) {
  const int best = *std::max_element(counts.begin(), counts.end());
  const int angles = static_cast<int>(counts.size());
  AngleRun run;
  while (counts[static_cast<size_t>(run.first)] != best) ++run.first;
  run.last = run.first;
  while (run.last + 1 < angles && counts[static_cast<size_t>(run.last + 1)] == best) ++run.last;
  if (run.first > 0 || run.last == angles - 1) return run;
  int before = 0;  // angles below 180 that continue below 0
  while (counts[static_cast<size_t>(angles - 1 - before)] == best) ++before;
  return before == 0 ? run : AngleRun{angles - before, run.last + angles};
}

}  // namespace lockstep::urban
