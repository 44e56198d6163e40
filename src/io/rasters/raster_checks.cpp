// Conditions on a grid and its heights, checked before a city is computed from them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/platform/parallel.hpp"
#include "io/rasters/crs.hpp"
#include "io/rasters/height_check.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

// Width and height of a pixel may differ by this share. docs/urban.md says what that costs.
constexpr double kSquareTolerance = 1e-3;
// Metres: Challenger Deep to Everest with a margin, and the largest difference of heights that a city's map can hold.
constexpr float kLowest = -12000, kHighest = 9000;
// Metres: the tallest living tree has 116.
constexpr float kTallPlant = 60, kTallestPlant = 130;
// Values that programs write where they know nothing.
constexpr float kUsualNodata[] = {-9999.0f, -99999.0f, -32768.0f, -32767.0f};
// A height above it, and not above kHighest, is one.
constexpr float kHighestNoHeight =
    std::max(kLowest, *std::max_element(std::begin(kUsualNodata), std::end(kUsualNodata)));

bool is_no_height(float v) {
  return v < kLowest || v > kHighest ||
         std::find(std::begin(kUsualNodata), std::end(kUsualNodata), v) != std::end(kUsualNodata);
}

std::string nodata_hint(float value) {
  return fmt::format("if that marks missing cells, the file must say so: gdal_edit.py -a_nodata {:g} FILE",
                     value);
}

/// Places of the first lowest and highest height, and of the first number that is none; the size where there is none.
struct Extremes {
  size_t low, high, bad;
};

/// Lowest and highest of numbers, infinities the wrong way round where all are NaN. Eight of each at a time, for vector instructions.
std::pair<float, float> range_of(std::span<const float> heights) {
  constexpr size_t kLanes = 8;
  float low[kLanes], high[kLanes];
  std::fill_n(low, kLanes, std::numeric_limits<float>::infinity());
  std::fill_n(high, kLanes, -std::numeric_limits<float>::infinity());
  const auto take = [&](size_t k, float v) {
    low[k] = v < low[k] ? v : low[k];
    high[k] = v > high[k] ? v : high[k];
  };
  size_t k = 0;
  for (; k + kLanes <= heights.size(); k += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) take(lane, heights[k + lane]);
  for (; k < heights.size(); ++k) take(0, heights[k]);
  return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

Extremes extremes_of(std::span<const float> heights, size_t first, size_t last) {
  constexpr size_t kBlock = 4096;
  const size_t none = heights.size();
  Extremes found{none, none, none};
  for (size_t begin = first; begin < last; begin += kBlock) {
    const size_t end = std::min(last, begin + kBlock);
    const auto [low, high] = range_of(heights.subspan(begin, end - begin));
    const bool ordinary = low > kHighestNoHeight && high <= kHighest;
    const bool inside = found.low != none && low >= heights[found.low] && high <= heights[found.high];
    if (ordinary && inside) continue;
    for (size_t k = begin; k < end; ++k) {
      const float v = heights[k];
      if (std::isnan(v)) continue;
      if (found.bad == none && is_no_height(v)) found.bad = k;
      if (found.low == none || v < heights[found.low]) found.low = k;
      if (found.high == none || v > heights[found.high]) found.high = k;
    }
  }
  return found;
}

/// The same by all threads.
Extremes extremes_of(std::span<const float> heights) {
  constexpr size_t kPart = size_t{1} << 18;
  const size_t none = heights.size();
  std::vector<Extremes> parts((heights.size() + kPart - 1) / kPart);
  platform::ThreadArena().for_parts(static_cast<int64_t>(parts.size()), [&](int64_t first, int64_t last) {
    for (size_t k = static_cast<size_t>(first); k < static_cast<size_t>(last); ++k)
      parts[k] = extremes_of(heights, k * kPart, std::min(none, (k + 1) * kPart));
  });
  Extremes found{none, none, none};
  for (const Extremes& part : parts) {
    if (found.bad == none) found.bad = part.bad;
    if (part.low == none) continue;
    if (found.low == none || heights[part.low] < heights[found.low]) found.low = part.low;
    if (found.high == none || heights[part.high] > heights[found.high]) found.high = part.high;
  }
  return found;
}

}  // namespace

void require_square_metres(const RasterGrid& grid, const std::string& where) {
  if (!grid.has_transform) {
    throw InputError("the raster has no georeference", where, "a pixel size in metres")
        .with_hint("give it with --pixel-size");
  }
  if (grid.crs_is_degrees) {
    throw InputError("its coordinates are degrees", where,
                     "a projected CRS in metres, since heights are metres")
        .with_hint(
            "reproject it first, e.g. gdalwarp -t_srs EPSG:<projected CRS of the place> in.tif out.tif");
  }
  if (std::abs(grid.metres_per_unit - 1) > 1e-9) {
    throw InputError(fmt::format("one unit of its CRS is {} m", grid.metres_per_unit), where,
                     "a CRS in metres")
        .with_hint(
            "reproject it first, e.g. gdalwarp -t_srs EPSG:<projected CRS of the place> in.tif out.tif");
  }
  const auto& t = grid.transform;
  for (const double value : t) {
    if (!std::isfinite(value)) throw InputError("its transform is not finite", where, "six finite numbers");
  }
  const double size = std::max(std::abs(t[1]), std::abs(t[5]));
  if (!(size > 0)) throw InputError("its pixels have no size", where, "a pixel size in metres above 0");
  if (std::abs(t[2]) > 1e-9 * size || std::abs(t[4]) > 1e-9 * size) {
    throw InputError("the raster is rotated", where, "rows that run from west to east")
        .with_hint("gdalwarp makes it north up");
  }
  if (t[1] < 0 || t[5] > 0) {
    throw InputError("the raster is mirrored", where,
                     "its first row in the north and its first column in the west")
        .with_hint("gdalwarp makes it north up");
  }
  if (std::abs(t[1] + t[5]) > kSquareTolerance * size) {
    throw InputError(fmt::format("its pixels are {} m by {} m", t[1], -t[5]), where,
                     "square pixels, to a thousandth")
        .with_hint("gdalwarp -tr SIZE SIZE makes them square");
  }
}

void require_same_grid(const RasterGrid& grid, const std::string& where, const RasterGrid& other,
                       const std::string& other_where) {
  if (grid.rows != other.rows || grid.cols != other.cols) {
    throw InputError(fmt::format("{} x {} cells (rows x columns)", other.rows, other.cols), other_where,
                     fmt::format("{} x {} as in {}", grid.rows, grid.cols, where));
  }
  if (grid.has_transform && other.has_transform) {
    // A hundredth of a pixel, over the whole raster: what rounding in text formats may cost, and far below
    // any effect.
    const double size = std::max(std::abs(grid.transform[1]), std::abs(grid.transform[5]));
    for (size_t k = 0; k < 6; ++k) {
      const double span = k == 1 || k == 4   ? static_cast<double>(grid.cols)
                          : k == 2 || k == 5 ? static_cast<double>(grid.rows)
                                             : 1.0;
      if (!(std::abs(grid.transform[k] - other.transform[k]) * span <= 0.01 * size)) {
        const auto text = [](const RasterGrid& g) {
          return fmt::format("corner {}, {} and pixels {} x {}", g.transform[0], g.transform[3],
                             g.transform[1], -g.transform[5]);
        };
        throw InputError(text(other), other_where, fmt::format("{} as in {}", text(grid), where));
      }
    }
  }
  if (!grid.crs_wkt.empty() && !other.crs_wkt.empty() && grid.crs_wkt != other.crs_wkt &&
      !is_same_crs(grid.crs_wkt, other.crs_wkt)) {
    throw InputError("another coordinate reference system", other_where, fmt::format("that of {}", where));
  }
}

std::string HeightCheck::text(const Place& place) const {
  return fmt::format("{:g} at row {}, column {}", place.value, place.position / cols_,
                     place.position % cols_);
}

void HeightCheck::take(std::span<const float> heights) {
  const auto [low, high, bad] = extremes_of(heights);
  const auto place = [&](size_t at) { return Place{heights[at], taken_ + static_cast<int64_t>(at)}; };
  if (bad < heights.size())
    throw InputError(text(place(bad)), where_, "heights in metres").with_hint(nodata_hint(heights[bad]));
  if (low < heights.size()) {
    if (low_.position < 0 || heights[low] < low_.value) low_ = place(low);
    if (high_.position < 0 || heights[high] > high_.value) high_ = place(high);
  }
  taken_ += static_cast<int64_t>(heights.size());
}

std::string HeightCheck::finish() const {
  if (low_.position < 0) return "";
  if (kind_ == HeightKind::absolute) {
    if (high_.value - low_.value > kHighest) {
      throw InputError(fmt::format("{} and {}", text(low_), text(high_)), where_, "a relief below 9 km")
          .with_hint(nodata_hint(std::abs(low_.value) > std::abs(high_.value) ? low_.value : high_.value));
    }
    return "";
  }
  if (high_.value > kTallestPlant) {
    throw InputError(text(high_), where_, "heights of plants above the ground, at most 130 m")
        .with_hint("heights above sea level need --canopy absolute");
  }
  if (high_.value <= kTallPlant) return "";
  return fmt::format("{}: a plant of {}; if these are heights above sea level, give --canopy absolute",
                     where_, text(high_));
}

std::string check_heights(const Array& values, HeightKind kind, const std::string& where) {
  HeightCheck check(kind, values.size(1), where);
  check.take(values.as<float>());
  return check.finish();
}

}  // namespace lockstep::io
