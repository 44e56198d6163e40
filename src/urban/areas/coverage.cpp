#include "urban/areas/coverage.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/vectors/rings.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

/// Shares below are what rounding leaves of nothing.
constexpr double kNoShare = 1e-11;
/// Areas below are none (pixels), and shares that differ by more than 1 and this are of parts that overlap.
constexpr double kNoArea = 1e-9, kTwice = 1e-6;

/// The part of a grid around a shape; columns and rows as real numbers from its corner.
struct Window {
  int64_t row = 0, col = 0, rows = 0, cols = 0;
  std::vector<double> sums;  // (rows, cols + 1): the change of the share from a pixel to the next

  double& at(int64_t r, int64_t c) { return sums[static_cast<size_t>(r * (cols + 1) + std::min(c, cols))]; }

  /// A part of an edge within one row of pixels, from the left to the right or the other way; x in 0 … cols.
  void add_in_row(int64_t r, double x0, double x1, double height) {
    if (x0 > x1) std::swap(x0, x1);
    const auto first = static_cast<int64_t>(std::floor(x0));
    const auto last = std::max(first, static_cast<int64_t>(std::ceil(x1)) - 1);
    const double length = x1 - x0;
    for (int64_t c = first; c <= last; ++c) {
      const double from = std::max(x0, static_cast<double>(c)), to = std::min(x1, static_cast<double>(c + 1));
      const double part = length > 0 ? height * (to - from) / length : height;
      // The area to the right of this part within its pixel, and the rest from the next pixel on.
      const double right = part * (static_cast<double>(c + 1) - 0.5 * (from + to));
      at(r, c) += right;
      at(r, c + 1) += part - right;
    }
  }
  /// An edge, cut at the window's top and bottom; beyond its sides it counts as on them.
  void add(Corner a, Corner b) {
    if (a.y == b.y) return;
    const double sign = a.y < b.y ? 1 : -1;
    if (sign < 0) std::swap(a, b);
    const double slope = (b.x - a.x) / (b.y - a.y);
    const auto x_at = [&](double y) { return y == a.y ? a.x : y == b.y ? b.x : a.x + slope * (y - a.y); };
    const double top = std::max(a.y, 0.0), bottom = std::min(b.y, static_cast<double>(rows));
    for (double y = top; y < bottom;) {
      const auto r = static_cast<int64_t>(std::floor(y));
      const double next = std::min(static_cast<double>(r + 1), bottom);
      add_clamped(r, y, next, x_at(y), x_at(next), sign);
      y = next;
    }
  }
  /// Cut where it leaves 0 … cols, so that each part is inside or on one side.
  void add_clamped(int64_t r, double y0, double y1, double x0, double x1, double sign) {
    const auto edge = static_cast<double>(cols);
    double cuts[4] = {0, 0, 0, 1};
    int count = 1;
    const double low = std::min(x0, x1), high = std::max(x0, x1);
    for (const double side : {0.0, edge})
      if (low < side && side < high) cuts[count++] = (side - x0) / (x1 - x0);
    if (count == 3 && cuts[2] < cuts[1]) std::swap(cuts[1], cuts[2]);
    cuts[count] = 1;
    for (int k = 0; k < count; ++k) {
      const double from = std::clamp(x0 + (x1 - x0) * cuts[k], 0.0, edge),
                   to = std::clamp(x0 + (x1 - x0) * cuts[k + 1], 0.0, edge);
      add_in_row(r, from, to, sign * (y1 - y0) * (cuts[k + 1] - cuts[k]));
    }
  }
};

/// Rings in pixels, the outer ones counterclockwise and holes the other way.
std::vector<Ring> rings_in_pixels(const AreaShape& shape, const io::RasterGrid& grid) {
  std::vector<Ring> rings;
  for (const Ring& given : shape.rings) {
    Ring ring;
    for (const Corner& c : given)
      ring.push_back(
          {(c.x - grid.transform[0]) / grid.transform[1], (c.y - grid.transform[3]) / grid.transform[5]});
    rings.push_back(std::move(ring));
  }
  const std::vector<std::vector<size_t>> around = io::rings_around(rings);
  for (size_t r = 0; r < rings.size(); ++r)
    if ((io::twice_area(rings[r]) > 0) == (around[r].size() % 2 == 1)) std::ranges::reverse(rings[r]);
  return rings;
}

}  // namespace

Coverage coverage_of(const AreaShape& shape, const io::RasterGrid& grid) {
  const std::vector<Ring> rings = rings_in_pixels(shape, grid);
  Coverage found;
  double left = 1e300, right = -1e300, top = 1e300, bottom = -1e300;
  for (const Ring& ring : rings) {
    found.whole += 0.5 * io::twice_area(ring);
    for (const Corner& c : ring) {
      left = std::min(left, c.x), right = std::max(right, c.x);
      top = std::min(top, c.y), bottom = std::max(bottom, c.y);
    }
  }
  if (!(found.whole > kNoArea))
    throw InputError("an area of 0 m²", shape.where, "corners around some ground");
  const auto cut = [](double v, int64_t most) {
    return static_cast<int64_t>(std::clamp(v, 0.0, static_cast<double>(most)));
  };
  Window window;
  window.row = cut(std::floor(top), grid.rows);
  window.col = cut(std::floor(left), grid.cols);
  window.rows = cut(std::ceil(bottom), grid.rows) - window.row;
  window.cols = cut(std::ceil(right), grid.cols) - window.col;
  if (window.rows <= 0 || window.cols <= 0) return found;
  window.sums.resize(static_cast<size_t>(window.rows * (window.cols + 1)));
  const auto inside = [&](const Corner& c) {
    return Corner{c.x - static_cast<double>(window.col), c.y - static_cast<double>(window.row)};
  };
  for (const Ring& ring : rings)
    for (size_t k = 0; k < ring.size(); ++k) window.add(inside(ring[k]), inside(ring[(k + 1) % ring.size()]));
  double lowest = 0, highest = 0;
  for (int64_t r = 0; r < window.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < window.cols; ++c) {
      sum += window.at(r, c);
      lowest = std::min(lowest, sum), highest = std::max(highest, sum);
      // Rows count downwards, so that rings which turn counterclockwise there give the opposite sign.
      const double share = std::abs(sum);
      if (share < kNoShare) continue;
      found.pixels.push_back(static_cast<uint32_t>((window.row + r) * grid.cols + window.col + c));
      found.shares.push_back(share > 1 - kNoShare ? 1.0 : share);
      found.inside += found.shares.back();
    }
  }
  // A part over another one counts twice, or, taken for a hole of it, below zero beyond it.
  if (highest - lowest > 1 + kTwice)
    throw InputError("parts of its polygons overlap", shape.where, "polygons whose boundaries do not cross");
  return found;
}

}  // namespace lockstep::urban
