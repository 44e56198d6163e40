#include "urban/city/prepare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/platform/parallel.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/error.hpp"
#include "urban/city/missing.hpp"

namespace lockstep::urban {

Raster::Raster(int64_t rows, int64_t cols, float value) : values(Storage::f32, {rows, cols}) {
  if (value != 0.0f) std::ranges::fill(pixels(), value);
}

namespace {

void check_shape(const Raster& raster, const Raster& dsm, std::string_view name) {
  if (raster.empty()) return;
  if (raster.values.shape() != dsm.values.shape())
    throw InputError(fmt::format("grid of {} x {}", raster.rows(), raster.cols()), name,
                     fmt::format("{} x {} as in the DSM", dsm.rows(), dsm.cols()));
}

void check(const CityInput& input) {
  const Raster& dsm = input.dsm;
  for (const Raster* raster : {&input.dsm, &input.dem, &input.cdsm, &input.tdsm}) {
    if (raster->values.rank() != 2 || raster->values.storage() != Storage::f32)
      throw InputError(fmt::format("an array of {} of shape {}", name(raster->values.storage()),
                                   to_string(raster->values.shape())),
                       "city", "f32 (rows, cols)");
  }
  if (dsm.empty()) throw InputError("empty grid", "dsm", "at least one pixel");
  check_shape(input.dem, dsm, "dem");
  check_shape(input.cdsm, dsm, "cdsm");
  check_shape(input.tdsm, dsm, "tdsm");
  if (!(input.pixel_size_m > 0) || !std::isfinite(input.pixel_size_m))
    throw InputError(fmt::format("pixel size {}", input.pixel_size_m), "city", "a positive length in metres");
  if (!(input.trunk_ratio >= 0 && input.trunk_ratio <= 1))
    throw InputError(fmt::format("trunk ratio {}", input.trunk_ratio), "city", "0 to 1");
  if (!input.tdsm.empty() && input.cdsm.empty())
    throw InputError("trunk heights without canopy heights", "tdsm", "a CDSM too");
  if (input.dsm_heights == DsmHeights::above_ground && input.dem.empty())
    throw InputError("a DSM above ground without the ground", "dem", "the height of the ground");
}

/// Throws InputError for what cannot be heights in metres. Declared markers of missing pixels are none.
void check_heights(const CityInput& input) {
  const auto of = [](const Raster& raster, io::HeightKind kind, const char* name) {
    if (raster.empty()) return;
    if (!raster.nodata) return void(io::check_heights(raster.values, kind, name));
    Array heights = raster.values;
    for (float& height : heights.mutate<float>())
      if (is_missing(raster, height)) height = std::numeric_limits<float>::quiet_NaN();
    io::check_heights(heights, kind, name);
  };
  const io::HeightKind plants = input.canopy_heights == CanopyHeights::absolute
                                    ? io::HeightKind::absolute
                                    : io::HeightKind::above_ground;
  of(input.dsm, io::HeightKind::absolute, "dsm");
  of(input.dem, io::HeightKind::absolute, "dem");
  of(input.cdsm, plants, "cdsm");
  of(input.tdsm, plants, "tdsm");
}

/// Calls `part(first, last)` for parts of all pixels, by all threads.
template <class Part>
void for_pixels(size_t count, const Part& part) {
  constexpr size_t kPart = size_t{1} << 16;
  platform::ThreadArena().for_parts(
      static_cast<int64_t>((count + kPart - 1) / kPart), [&](int64_t first, int64_t last) {
        part(static_cast<size_t>(first) * kPart, std::min(count, static_cast<size_t>(last) * kPart));
      });
}

/// The lowest of all parts' `of(first, last)`; NaN is none.
template <class Of>
float lowest_of_parts(size_t count, const Of& of) {
  std::atomic<float> lowest{std::numeric_limits<float>::infinity()};
  for_pixels(count, [&](size_t first, size_t last) {
    const float here = of(first, last);
    for (float seen = lowest; here < seen && !lowest.compare_exchange_weak(seen, here);) {}
  });
  return lowest;
}

/// Missing pixels become NaN, heights above ground absolute.
void make_absolute(CityInput& input) {
  const bool add = input.dsm_heights == DsmHeights::above_ground;
  const std::span<float> heights = input.dsm.pixels();
  const std::span<const float> ground = std::as_const(input.dem).pixels();
  for_pixels(heights.size(), [&](size_t first, size_t last) {
    for (size_t p = first; p < last; ++p) {
      if (is_missing(input.dsm, heights[p]) || (add && is_missing(input.dem, ground[p])))
        heights[p] = std::numeric_limits<float>::quiet_NaN();
      else if (add)
        heights[p] += ground[p];
    }
  });
}

float lowest_of(std::span<const float> values) {
  return lowest_of_parts(values.size(), [&](size_t first, size_t last) {
    float lowest = std::numeric_limits<float>::infinity();
    for (size_t p = first; p < last; ++p)
      if (!std::isnan(values[p])) lowest = std::min(lowest, values[p]);
    return lowest;
  });
}

float highest_of(std::span<const float> values) {
  return -lowest_of_parts(values.size(), [&](size_t first, size_t last) {
    float highest = -std::numeric_limits<float>::infinity();
    for (size_t p = first; p < last; ++p) highest = std::max(highest, values[p]);
    return -highest;
  });
}

/// Absolute heights from plants given above ground or absolute; 0 where there is none. False where none is anywhere.
bool add_vegetation(CityInput& input, City& city) {
  const bool absolute = input.canopy_heights == CanopyHeights::absolute;
  const bool trunks_given = !input.tdsm.empty();
  city.canopy = std::move(input.cdsm.values);
  city.trunk = trunks_given ? std::move(input.tdsm.values) : Array(Storage::f32, {city.rows, city.cols});
  const std::span<const float> grounds = city.dsm.as<float>();
  const std::span<float> canopies = city.canopy.mutate<float>(), trunks = city.trunk.mutate<float>();
  const float ratio = static_cast<float>(input.trunk_ratio);
  const auto height = [&](const Raster& raster, float value, float ground) {
    if (is_missing(raster, value) || value == 0.0f) return 0.0f;
    if (!absolute) return value > 0.0f ? value + ground : 0.0f;
    const float top = value + city.shift;
    return top == ground ? 0.0f : std::max(top, 0.0f);
  };
  std::atomic<bool> any = false;
  const auto plant = [&](size_t p) {
    const float ground = grounds[p];
    const float canopy = std::exchange(canopies[p], 0.0f), trunk = std::exchange(trunks[p], 0.0f);
    if (ground == kNoHeight) return false;
    const float top = canopies[p] = height(input.cdsm, canopy, ground);
    if (top == 0.0f) return false;
    if (trunks_given) {
      trunks[p] = std::min(height(input.tdsm, trunk, ground), top);
    } else {
      const float above = (absolute ? top - ground : canopy) * ratio;
      trunks[p] = above > 0 ? std::min(above + ground, top) : 0.0f;
    }
    return true;
  };
  for_pixels(canopies.size(), [&](size_t first, size_t last) {
    bool here = false;
    for (size_t p = first; p < last; ++p) here |= plant(p);
    if (here) any = true;
  });
  return any;
}

/// The grids of checked, absolute heights whose lowest is `lowest`.
City raise(CityInput input, float lowest, float shift, bool keep_canopy) {
  City city;
  city.rows = input.dsm.rows();
  city.cols = input.dsm.cols();
  city.pixel_size_m = input.pixel_size_m;
  city.dsm = std::move(input.dsm.values);
  city.shift = shift;
  const std::span<float> heights = city.dsm.mutate<float>();
  std::atomic<int64_t> missing{0};
  for_pixels(heights.size(), [&](size_t first, size_t last) {
    int64_t here = 0;
    for (size_t p = first; p < last; ++p) {
      const bool none = std::isnan(heights[p]);
      heights[p] = none ? kNoHeight : heights[p] + city.shift;
      here += none;
    }
    missing += here;
  });
  city.missing = missing;
  city.dem = std::move(input.dem.values);
  for (float& height : city.dem.mutate<float>())
    height = is_missing(input.dem, height) ? kNoHeight : height + city.shift;
  if (!input.cdsm.empty() && !add_vegetation(input, city) && !keep_canopy) city.canopy = city.trunk = {};
  city.lowest = lowest + city.shift;
  city.highest = kNoHeight;
  for (const Array* grid : {&city.dsm, &city.canopy, &city.trunk})
    city.highest = std::max(city.highest, highest_of(grid->as<float>()));
  return city;
}

}  // namespace

City prepare_city(CityInput input) {
  check(input);
  check_heights(input);
  make_absolute(input);
  const float lowest = lowest_of(std::as_const(input.dsm).pixels());
  if (!std::isfinite(lowest)) throw InputError("no pixel with a height", "dsm", "at least one");
  return raise(std::move(input), lowest, lowest < 0 ? -lowest : 0.0f, false);
}

City prepare_part(CityInput input, float shift) {
  check(input);
  make_absolute(input);
  const float lowest = lowest_of(std::as_const(input.dsm).pixels());
  return raise(std::move(input), lowest, shift, true);
}

std::vector<uint8_t> ground_mask(const City& city) { return ground_mask(city, 0, 0, city.rows, city.cols); }

std::vector<uint8_t> ground_mask(const City& city, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  if (!city.has_ground()) throw InputError("no DEM", "ground mask", "the height of the ground");
  if (city.windows) return city.windows->ground(row, col, rows, cols);
  const std::span<const float> dsm = city.dsm.as<float>(), dem = city.dem.as<float>();
  std::vector<uint8_t> ground;
  ground.reserve(static_cast<size_t>(rows * cols));
  for (int64_t r = row; r < row + rows; ++r)
    for (int64_t c = col; c < col + cols; ++c) {
      const auto p = static_cast<size_t>(r * city.cols + c);
      ground.push_back(dsm[p] != kNoHeight && dem[p] != kNoHeight && dsm[p] - dem[p] < 2.0f);
    }
  return ground;
}

}  // namespace lockstep::urban
