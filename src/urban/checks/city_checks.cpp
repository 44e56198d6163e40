#include "urban/checks/city_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "core/platform/parallel.hpp"
#include "io/pictures/map_picture.hpp"
#include "urban/city/missing.hpp"
#include "urban/radiation/constants.hpp"

namespace lockstep::urban {
namespace {

constexpr float kLowestRoof = 2;  // m above the ground, as the model has it
/// Shares of fewer pixels say nothing.
constexpr int64_t kEnoughPixels = 100;
/// Medians are of at most about as many pixels.
constexpr int64_t kSamples = int64_t{1} << 20;

struct Highest {
  float value = 0;
  int64_t at = -1;
  void take(float v, int64_t pixel) {
    if (at < 0 || v > value) value = v, at = pixel;
  }
};

float quantile(std::vector<float>& values, double share) {
  if (values.empty()) return std::numeric_limits<float>::quiet_NaN();
  const auto at = values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// Heights of a raster; NaN where they are missing.
class Heights {
 public:
  explicit Heights(const Raster& raster) : raster_(raster), pixels_(raster.pixels()) {}
  bool empty() const { return pixels_.empty(); }
  float operator[](int64_t p) const {
    const float height = pixels_[static_cast<size_t>(p)];
    return is_missing(raster_, height) ? std::numeric_limits<float>::quiet_NaN() : height;
  }

 private:
  const Raster& raster_;
  std::span<const float> pixels_;
};

/// Counts, extremes and samples of pixels.
struct CityCounts {
  int64_t there = 0, missing = 0, without_ground = 0;
  int64_t ground = 0, roofs = 0, below = 0, water = 0;
  int64_t plants = 0, plants_on_surface = 0, plants_in_ground = 0;
  float lowest = std::numeric_limits<float>::infinity(), highest = -std::numeric_limits<float>::infinity();
  Highest building, plant;
  std::vector<float> heights, over_ground, ratios, plant_heights;

  void add(const CityCounts& later) {
    for (int64_t CityCounts::* count :
         {&CityCounts::there, &CityCounts::missing, &CityCounts::without_ground, &CityCounts::ground,
          &CityCounts::roofs, &CityCounts::below, &CityCounts::water, &CityCounts::plants,
          &CityCounts::plants_on_surface, &CityCounts::plants_in_ground})
      this->*count += later.*count;
    lowest = std::min(lowest, later.lowest);
    highest = std::max(highest, later.highest);
    for (Highest CityCounts::* tallest : {&CityCounts::building, &CityCounts::plant})
      if ((later.*tallest).at >= 0) (this->*tallest).take((later.*tallest).value, (later.*tallest).at);
    for (std::vector<float> CityCounts::* samples :
         {&CityCounts::heights, &CityCounts::over_ground, &CityCounts::ratios, &CityCounts::plant_heights})
      (this->*samples).insert((this->*samples).end(), (later.*samples).begin(), (later.*samples).end());
  }
};

/// A pass over all pixels by all threads, whose parts are added in order.
class CityPass : public CityCounts {
 public:
  explicit CityPass(const CheckedCity& checked)
      : checked_(checked),
        dsm_(checked.city.dsm),
        dem_(checked.city.dem),
        cdsm_(checked.city.cdsm),
        land_cover_(checked.land_cover) {
    constexpr int64_t kPart = int64_t{1} << 16;
    const int64_t count = checked.city.dsm.rows() * checked.city.dsm.cols();
    sampled_ = std::max<int64_t>(1, count / kSamples);
    std::vector<CityCounts> parts(static_cast<size_t>((count + kPart - 1) / kPart));
    platform::ThreadArena().for_parts(static_cast<int64_t>(parts.size()), [&](int64_t first, int64_t last) {
      for (int64_t k = first; k < last; ++k)
        for (int64_t p = k * kPart; p < std::min(count, (k + 1) * kPart); ++p)
          look(p, parts[static_cast<size_t>(k)]);
    });
    for (const CityCounts& part : parts) add(part);
  }

  /// Height above the ground; NaN where it is not known.
  float above_ground(int64_t p) const {
    const float height = dsm_[p];
    if (checked_.city.dsm_heights == DsmHeights::above_ground) return height;
    return has_ground() ? height - dem_[p] : std::numeric_limits<float>::quiet_NaN();
  }
  bool has_ground() const { return !dem_.empty(); }
  float surface(int64_t p) const { return dsm_[p]; }
  float land_cover(int64_t p) const { return land_cover_[p]; }
  std::string place(int64_t p) const {
    const int64_t cols = checked_.city.dsm.cols();
    return fmt::format("row {}, column {}", p / cols, p % cols);
  }
  double share(int64_t count) const {
    return there ? 100 * static_cast<double>(count) / static_cast<double>(there) : 0;
  }

 private:
  void look(int64_t p, CityCounts& counts) const {
    const float height = dsm_[p];
    const bool no_ground = has_ground() && std::isnan(dem_[p]);
    if (std::isnan(height) || (no_ground && checked_.city.dsm_heights == DsmHeights::above_ground)) {
      ++counts.missing;
      return;
    }
    counts.without_ground += no_ground;
    ++counts.there;
    counts.lowest = std::min(counts.lowest, height);
    counts.highest = std::max(counts.highest, height);
    const bool sample = p % sampled_ == 0;
    if (sample) counts.heights.push_back(height);
    const float above = above_ground(p);
    if (!std::isnan(above)) {
      ++(above < kLowestRoof ? counts.ground : counts.roofs);
      counts.below += above < -kLowestRoof;
      counts.building.take(above, p);
      if (sample) counts.over_ground.push_back(above);
      if (sample && has_ground() && dem_[p] > 5) counts.ratios.push_back(height / dem_[p]);
    }
    if (!land_cover_.empty()) counts.water += land_cover_[p] == float(kWaterCode);
    if (!cdsm_.empty()) look_at_plant(p, height, sample, counts);
  }
  void look_at_plant(int64_t p, float surface, bool sample, CityCounts& counts) const {
    const float given = cdsm_[p];
    if (std::isnan(given) || given == 0) return;
    const bool absolute = checked_.city.canopy_heights == CanopyHeights::absolute;
    // The surface that absolute canopies lie over: in a DSM above ground the ground counts as none.
    const float top = absolute ? given - surface : given;
    counts.plants_on_surface +=
        !absolute && (std::abs(given - surface) < 0.5f || (has_ground() && std::abs(given - dem_[p]) < 0.5f));
    counts.plants_in_ground += absolute && top < -1;
    if (!(top > 0)) return;
    ++counts.plants;
    counts.plant.take(top, p);
    if (sample) counts.plant_heights.push_back(top);
  }

  const CheckedCity& checked_;
  Heights dsm_, dem_, cdsm_, land_cover_;
  int64_t sampled_ = 1;
};

/// "as if the DSM were in feet", where the ratio of the two heights says so.
std::string unit_hint(CityPass& pass) {
  const float ratio = quantile(pass.ratios, 0.5);
  const auto near = [&](float factor) { return std::abs(ratio / factor - 1) < 0.05f; };
  if (near(1 / 0.3048f)) return "their ratio is 3.28: is the DSM in feet?";
  if (near(0.3048f)) return "their ratio is 0.305: is the DEM in feet?";
  if (near(10)) return "their ratio is 10: is the DSM in decimetres?";
  if (near(0.1f)) return "their ratio is 0.1: is the DEM in decimetres?";
  return "both must be metres above the same datum";
}

OptionError city_error(const char* option, std::string what, std::string expected, std::string hint) {
  return schema_of<SeriesOptions>().error(
      {OptionError::Kind::invalid, option, std::move(what), std::move(expected), std::move(hint)});
}

void check_ground(CityPass& pass, const CheckedCity& checked, Findings& findings) {
  if (!pass.has_ground()) {
    if (!checked.land_cover.empty())
      return findings.ok("ground", {}, "", "no DEM: the land cover distinguishes buildings from the ground");
    const auto flat = std::count_if(pass.heights.begin(), pass.heights.end(),
                                    [&](float h) { return h < pass.lowest + kLowestRoof; });
    const double share = 100.0 * double(flat) / double(pass.heights.size());
    const std::string text = fmt::format(
        "no DEM and no land cover: the ground is taken as flat at {:g} m; {:.0f} % of the pixels are less "
        "than 2 m above "
        "it, the others are buildings",
        pass.lowest, share);
    if (pass.there >= kEnoughPixels && share < 25)
      findings.warn("ground", share, "%", text + findings.spelled(" ({dem} gives the ground)"));
    else
      findings.ok("ground", share, "%", text);
    return;
  }
  const double median = static_cast<double>(quantile(pass.over_ground, 0.5));
  const int64_t known = pass.ground + pass.roofs;
  const double low = known ? 100.0 * double(pass.below) / double(known) : 0,
               ground = known ? 100.0 * double(pass.ground) / double(known) : 100;
  if (known >= kEnoughPixels && low > 50)
    return findings.refuse(
        "DEM", city_error("dem",
                          fmt::format("the DSM is below the DEM by more than 2 m at {:.0f} % of the "
                                      "pixels (median {:.1f} m)",
                                      low, median),
                          "the ground under the DSM, in the same unit and datum", unit_hint(pass)));
  if (known >= kEnoughPixels && pass.ground == 0)
    return findings.refuse(
        "DEM", city_error("dem",
                          fmt::format("all pixels of the DSM are 2 m or more above the DEM (median {:.1f} "
                                      "m): nothing is ground",
                                      median),
                          "the ground under the DSM, in the same unit and datum", unit_hint(pass)));
  if (known >= kEnoughPixels && low > 1)
    findings.warn("DEM", low, "% of pixels",
                  fmt::format("the DSM is below the DEM by more than 2 m at {:.1f} % of the pixels", low));
  else if (known >= kEnoughPixels && ground < 5)
    findings.warn("DEM", ground, "% ground",
                  fmt::format("only {:.1f} % of the pixels are ground: {}", ground, unit_hint(pass)));
  else
    findings.ok("DEM", median, "m", "median of the DSM over the DEM");
  findings.ok("ground", ground, "%", "pixels less than 2 m above the DEM");
  findings.ok("roofs", 100 - ground, "%", "pixels 2 m or more above the DEM");
  constexpr float kTallest = 450;
  const std::string text =
      fmt::format("{:.1f} m at {}", pass.building.value, pass.place(std::max<int64_t>(0, pass.building.at)));
  if (pass.building.value > kTallest)
    findings.warn("tallest building", pass.building.value, "m", "the DSM rises over the DEM by " + text);
  else
    findings.ok("tallest building", pass.building.value, "m", text);
}

void check_plants(CityPass& pass, const CheckedCity& checked, Findings& findings) {
  if (checked.city.cdsm.empty()) return findings.ok("trees", 0, "%", "no canopy is given");
  const double share = pass.share(pass.plants);
  if (pass.there >= kEnoughPixels && share > 90 && 5 * pass.plants_on_surface > pass.plants)
    return findings.refuse(
        "trees", city_error("cdsm",
                            fmt::format("plants at {:.0f} % of the pixels, as high as the ground or the DSM "
                                        "are above sea level",
                                        share),
                            "heights above the ground, 0 where there is no plant",
                            "heights above sea level need {canopy} absolute"));
  if (pass.plants_in_ground >= kEnoughPixels && pass.plants_in_ground > pass.plants)
    return findings.refuse("trees",
                           city_error("cdsm",
                                      fmt::format("the canopy is below the DSM at {} pixels, above it at {}",
                                                  pass.plants_in_ground, pass.plants),
                                      "absolute heights, as {canopy} absolute says",
                                      "heights above the ground need {canopy} above-ground"));
  if (pass.there >= kEnoughPixels && share > 95)
    findings.warn("trees", share, "%",
                  fmt::format("plants at {:.0f} % of the pixels: heights above sea level need {}", share,
                              findings.spelled("{canopy} absolute")));
  else
    findings.ok("trees", share, "%", "pixels under plants");
  if (pass.plants == 0) return;
  const std::string tallest = fmt::format("{:.1f} m at {}", pass.plant.value, pass.place(pass.plant.at));
  constexpr float kTallTrees = 35;
  if (const float most = quantile(pass.plant_heights, 0.9); most > kTallTrees)
    findings.warn(
        "tallest tree", pass.plant.value, "m",
        fmt::format(
            "a tenth of the pixels under plants is above {:.0f} m, the tallest has {}: are they feet, or "
            "heights above sea level?",
            most, tallest));
  else
    findings.ok("tallest tree", pass.plant.value, "m", tallest);
}

void check_points(const CityPass& pass, const CheckedCity& checked, Findings& findings) {
  for (const SeriesPoint& point : checked.points) {
    const int64_t p = point.row * checked.city.dsm.cols() + point.col;
    if (std::isnan(pass.surface(p))) {
      findings.warn("points", {}, "",
                    fmt::format("point {} is on a missing pixel: all its values are NaN", point.id));
      continue;
    }
    const float above = pass.above_ground(p);
    const bool roof = std::isnan(above)
                          ? !checked.land_cover.empty() && pass.land_cover(p) == float(kBuildingCode)
                          : above >= kLowestRoof;
    if (roof)
      findings.warn("points", above, "m",
                    fmt::format("point {} is on a roof{}", point.id,
                                std::isnan(above) ? "" : fmt::format(", {:.1f} m above the ground", above)));
  }
  if (!checked.points.empty())
    findings.ok("points", static_cast<double>(checked.points.size()), "", "points of interest");
}

/// How many, and how far from them results can be wrong: the reach of a view of the ground, and of the shade of what is missing.
std::string missing_text(const CityPass& pass) {
  constexpr double kGroundView = 22, kLowSun = 10;  // metres, degrees
  if (pass.missing == 0) return "0 pixels";
  const double shade = double(pass.highest - pass.lowest) / std::tan(kLowSun * std::numbers::pi / 180);
  return fmt::format(
      "{} pixels: as beyond the raster's edge, nothing is seen there. Results change up to {:g} m from them, "
      "and where a "
      "building is missing up to {:.0f} m, as far as the relief's shade reaches when the sun is {:g}° high",
      pass.missing, kGroundView, shade, kLowSun);
}

}  // namespace

void check_city(const CheckedCity& checked, Findings& findings) {
  CityPass pass(checked);
  const io::RasterGrid& grid = checked.grid;
  const double pixel = checked.city.pixel_size_m;
  findings.ok(
      "extent", pixel * static_cast<double>(grid.cols), "m",
      fmt::format("{} x {} pixels, {:g} m from west to east, {:g} m from south to north", grid.rows,
                  grid.cols, pixel * static_cast<double>(grid.cols), pixel * static_cast<double>(grid.rows)));
  findings.ok("pixel", pixel, "m",
              grid.crs_wkt.empty() ? "" : fmt::format("{:g} in the CRS", grid.pixel_size()));
  findings.ok("CRS", {}, "", grid.crs_wkt.empty() ? "none" : io::crs_title(grid.crs_wkt));
  findings.ok("vertical unit", {}, "", grid.value_unit.empty() ? "not named: metres" : grid.value_unit);
  if (pass.there == 0) return;  // refused later
  const double missing = 100.0 * double(pass.missing) / double(pass.missing + pass.there);
  findings.ok("missing pixels", missing, "%", missing_text(pass));
  if (pass.without_ground > 0)
    findings.warn(
        "ground height", pass.share(pass.without_ground), "%",
        fmt::format("{} pixels of the DSM have no height in the DEM: they count as buildings, without ground "
                    "for people",
                    pass.without_ground));
  findings.ok("heights", pass.highest - pass.lowest, "m",
              fmt::format("the DSM runs from {:g} to {:g} m", pass.lowest, pass.highest));
  check_ground(pass, checked, findings);
  if (!checked.land_cover.empty()) findings.ok("water", pass.share(pass.water), "%", "pixels of class 7");
  check_plants(pass, checked, findings);
  check_points(pass, checked, findings);
}

}  // namespace lockstep::urban
