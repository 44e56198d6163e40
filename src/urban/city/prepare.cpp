#include "urban/city/prepare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

bool is_missing(const Raster& raster, float value) {
  return !std::isfinite(value) || (raster.nodata && value == *raster.nodata);
}

void check_shape(const Raster& raster, const Raster& dsm, std::string_view name) {
  if (raster.empty()) return;
  if (raster.rows != dsm.rows || raster.cols != dsm.cols)
    throw InputError(fmt::format("grid of {} x {}", raster.rows, raster.cols), name,
                     fmt::format("{} x {} as in the DSM", dsm.rows, dsm.cols));
}

void check(const CityInput& input) {
  const Raster& dsm = input.dsm;
  if (dsm.rows < 1 || dsm.cols < 1) throw InputError("empty grid", "dsm", "at least one pixel");
  for (const Raster* raster : {&input.dsm, &input.dem, &input.cdsm, &input.tdsm}) {
    if (raster->values.size() != static_cast<size_t>(raster->rows * raster->cols))
      throw InputError(fmt::format("{} values", raster->values.size()), "city",
                       fmt::format("{} x {}", raster->rows, raster->cols));
  }
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

/// Missing pixels become NaN, heights above ground absolute.
void make_absolute(CityInput& input) {
  const bool add = input.dsm_heights == DsmHeights::above_ground;
  for (size_t p = 0; p < input.dsm.values.size(); ++p) {
    float& height = input.dsm.values[p];
    if (is_missing(input.dsm, height) || (add && is_missing(input.dem, input.dem.values[p])))
      height = std::numeric_limits<float>::quiet_NaN();
    else if (add)
      height += input.dem.values[p];
  }
}

float lowest_of(const std::vector<float>& values) {
  float lowest = std::numeric_limits<float>::infinity();
  for (float value : values)
    if (!std::isnan(value)) lowest = std::min(lowest, value);
  return lowest;
}

/// Absolute heights from plants given above ground or absolute; 0 where there is none.
void add_vegetation(CityInput& input, City& city) {
  const bool absolute = input.canopy_heights == CanopyHeights::absolute;
  const bool trunks_given = !input.tdsm.empty();
  city.canopy = std::move(input.cdsm.values);
  city.trunk = std::move(input.tdsm.values);
  city.trunk.resize(city.canopy.size());
  const float ratio = static_cast<float>(input.trunk_ratio);
  const auto height = [&](const Raster& raster, float value, float ground) {
    if (is_missing(raster, value) || value == 0.0f) return 0.0f;
    if (!absolute) return value > 0.0f ? value + ground : 0.0f;
    const float top = value + city.shift;
    return top == ground ? 0.0f : std::max(top, 0.0f);
  };
  bool any = false;
  for (size_t p = 0; p < city.canopy.size(); ++p) {
    const float ground = city.dsm[p];
    const float canopy = std::exchange(city.canopy[p], 0.0f), trunk = std::exchange(city.trunk[p], 0.0f);
    if (ground == kNoHeight) continue;
    const float top = city.canopy[p] = height(input.cdsm, canopy, ground);
    if (top == 0.0f) continue;
    any = true;
    if (trunks_given) {
      city.trunk[p] = std::min(height(input.tdsm, trunk, ground), top);
    } else {
      const float above = (absolute ? top - ground : canopy) * ratio;
      city.trunk[p] = above > 0 ? std::min(above + ground, top) : 0.0f;
    }
  }
  if (!any) city.canopy = city.trunk = {};
}

}  // namespace

City prepare_city(CityInput input) {
  check(input);
  make_absolute(input);
  City city;
  city.rows = input.dsm.rows;
  city.cols = input.dsm.cols;
  city.pixel_size_m = input.pixel_size_m;
  city.dsm = std::move(input.dsm.values);
  const float lowest = lowest_of(city.dsm);
  if (!std::isfinite(lowest)) throw InputError("no pixel with a height", "dsm", "at least one");
  city.shift = lowest < 0 ? -lowest : 0.0f;
  for (float& height : city.dsm) {
    const bool missing = std::isnan(height);
    height = missing ? kNoHeight : height + city.shift;
    city.missing += missing;
  }
  city.dem = std::move(input.dem.values);
  for (float& height : city.dem) height = is_missing(input.dem, height) ? kNoHeight : height + city.shift;
  if (!input.cdsm.empty()) add_vegetation(input, city);
  city.lowest = lowest + city.shift;
  city.highest = city.lowest;
  for (const std::vector<float>* grid : {&city.dsm, &city.canopy, &city.trunk})
    for (float value : *grid) city.highest = std::max(city.highest, value);
  return city;
}

std::vector<uint8_t> ground_mask(const City& city) {
  if (city.dem.empty()) throw InputError("no DEM", "ground mask", "the height of the ground");
  std::vector<uint8_t> ground(city.dsm.size());
  for (size_t p = 0; p < ground.size(); ++p)
    ground[p] = city.dsm[p] != kNoHeight && city.dem[p] != kNoHeight && city.dsm[p] - city.dem[p] < 2.0f;
  return ground;
}

}  // namespace lockstep::urban
