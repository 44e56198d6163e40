#include "urban/checks/city_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "io/pictures/map_picture.hpp"
#include "urban/radiation/constants.hpp"

namespace lockstep::urban {
namespace {

constexpr float kRoof = 2;  // m above the ground, as the model has it
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

/// A pass over all pixels.
class CityPass {
 public:
  explicit CityPass(const CheckedCity& checked) : checked_(checked), city_(checked.city) {
    const int64_t count = city_.dsm.rows() * city_.dsm.cols();
    sampled_ = std::max<int64_t>(1, count / kSamples);
    for (int64_t p = 0; p < count; ++p) look(p);
  }

  /// Height above the ground; NaN where it is not known.
  float above_ground(int64_t p) const {
    const float height = value(city_.dsm, p);
    if (city_.dsm_heights == DsmHeights::above_ground) return height;
    return has_ground() ? height - value(city_.dem, p) : std::numeric_limits<float>::quiet_NaN();
  }
  bool has_ground() const { return !city_.dem.empty(); }
  static float value(const Raster& raster, int64_t p) {
    const float v = raster.pixels()[static_cast<size_t>(p)];
    const bool none = !std::isfinite(v) || (raster.nodata && v == *raster.nodata);
    return none ? std::numeric_limits<float>::quiet_NaN() : v;
  }
  std::string place(int64_t p) const {
    return fmt::format("row {}, column {}", p / city_.dsm.cols(), p % city_.dsm.cols());
  }
  double share(int64_t count) const {
    return there_ ? 100 * static_cast<double>(count) / static_cast<double>(there_) : 0;
  }

  int64_t there_ = 0, missing_ = 0;
  int64_t ground_ = 0, roofs_ = 0, below_ = 0, water_ = 0;
  int64_t plants_ = 0, plants_on_surface_ = 0, plants_in_ground_ = 0;
  float lowest_ = std::numeric_limits<float>::infinity(), highest_ = -std::numeric_limits<float>::infinity();
  Highest building_, plant_;
  std::vector<float> heights_, over_ground_, ratios_, plant_heights_;

 private:
  void look(int64_t p) {
    const float height = value(city_.dsm, p);
    if (std::isnan(height)) {
      ++missing_;
      return;
    }
    ++there_;
    lowest_ = std::min(lowest_, height);
    highest_ = std::max(highest_, height);
    const bool sample = p % sampled_ == 0;
    if (sample) heights_.push_back(height);
    const float above = above_ground(p);
    if (!std::isnan(above)) {
      ++(above < kRoof ? ground_ : roofs_);
      below_ += above < -kRoof;
      building_.take(above, p);
      if (sample) over_ground_.push_back(above);
      if (const float dem = value(city_.dem, p); sample && dem > 5) ratios_.push_back(height / dem);
    }
    if (!checked_.land_cover.empty()) {
      const float cover = value(checked_.land_cover, p);
      water_ += cover == float(kWaterCode);
    }
    if (!city_.cdsm.empty()) look_at_plant(p, height, sample);
  }
  void look_at_plant(int64_t p, float surface, bool sample) {
    const float given = value(city_.cdsm, p);
    if (std::isnan(given) || given == 0) return;
    const bool absolute = city_.canopy_heights == CanopyHeights::absolute;
    // The surface that absolute canopies lie over: in a DSM above ground the ground counts as none.
    const float top = absolute ? given - surface : given;
    plants_on_surface_ += !absolute && (std::abs(given - surface) < 0.5f ||
                                        (has_ground() && std::abs(given - value(city_.dem, p)) < 0.5f));
    plants_in_ground_ += absolute && top < -1;
    if (!(top > 0)) return;
    ++plants_;
    plant_.take(top, p);
    if (sample) plant_heights_.push_back(top);
  }

  const CheckedCity& checked_;
  const CityInput& city_;
  int64_t sampled_ = 1;
};

/// "as if the DSM were in feet", where the ratio of the two heights says so.
std::string unit_hint(CityPass& pass) {
  const float ratio = quantile(pass.ratios_, 0.5);
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
    const auto flat = std::count_if(pass.heights_.begin(), pass.heights_.end(),
                                    [&](float h) { return h < pass.lowest_ + kRoof; });
    const double share = 100.0 * double(flat) / double(pass.heights_.size());
    const std::string text = fmt::format(
        "no DEM and no land cover: the ground is taken as flat at {:g} m; {:.0f} % of the pixels are less "
        "than 2 m above "
        "it, the others are buildings",
        pass.lowest_, share);
    if (pass.there_ >= kEnoughPixels && share < 25)
      findings.warn("ground", share, "%", text + findings.spelled(" ({dem} gives the ground)"));
    else
      findings.ok("ground", share, "%", text);
    return;
  }
  const double median = static_cast<double>(quantile(pass.over_ground_, 0.5));
  const int64_t known = pass.ground_ + pass.roofs_;
  const double low = known ? 100.0 * double(pass.below_) / double(known) : 0,
               ground = known ? 100.0 * double(pass.ground_) / double(known) : 100;
  if (known >= kEnoughPixels && low > 50)
    return findings.refuse(
        "DEM", city_error("dem",
                          fmt::format("the DSM is below the DEM by more than 2 m at {:.0f} % of the "
                                      "pixels (median {:.1f} m)",
                                      low, median),
                          "the ground under the DSM, in the same unit and datum", unit_hint(pass)));
  if (known >= kEnoughPixels && pass.ground_ == 0)
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
  const std::string text = fmt::format("{:.1f} m at {}", pass.building_.value,
                                       pass.place(std::max<int64_t>(0, pass.building_.at)));
  if (pass.building_.value > kTallest)
    findings.warn("tallest building", pass.building_.value, "m", "the DSM rises over the DEM by " + text);
  else
    findings.ok("tallest building", pass.building_.value, "m", text);
}

void check_plants(CityPass& pass, const CheckedCity& checked, Findings& findings) {
  if (checked.city.cdsm.empty()) return findings.ok("trees", 0, "%", "no canopy is given");
  const double share = pass.share(pass.plants_);
  if (pass.there_ >= kEnoughPixels && share > 90 && 5 * pass.plants_on_surface_ > pass.plants_)
    return findings.refuse(
        "trees", city_error("cdsm",
                            fmt::format("plants at {:.0f} % of the pixels, as high as the ground or the DSM "
                                        "are above sea level",
                                        share),
                            "heights above the ground, 0 where there is no plant",
                            "heights above sea level need {canopy} absolute"));
  if (pass.plants_in_ground_ >= kEnoughPixels && pass.plants_in_ground_ > pass.plants_)
    return findings.refuse("trees",
                           city_error("cdsm",
                                      fmt::format("the canopy is below the DSM at {} pixels, above it at {}",
                                                  pass.plants_in_ground_, pass.plants_),
                                      "absolute heights, as {canopy} absolute says",
                                      "heights above the ground need {canopy} above-ground"));
  if (pass.there_ >= kEnoughPixels && share > 95)
    findings.warn("trees", share, "%",
                  fmt::format("plants at {:.0f} % of the pixels: heights above sea level need {}", share,
                              findings.spelled("{canopy} absolute")));
  else
    findings.ok("trees", share, "%", "pixels under plants");
  if (pass.plants_ == 0) return;
  const std::string tallest = fmt::format("{:.1f} m at {}", pass.plant_.value, pass.place(pass.plant_.at));
  constexpr float kTallTrees = 35;
  if (const float most = quantile(pass.plant_heights_, 0.9); most > kTallTrees)
    findings.warn(
        "tallest tree", pass.plant_.value, "m",
        fmt::format(
            "a tenth of the pixels under plants is above {:.0f} m, the tallest has {}: are they feet, or "
            "heights above sea level?",
            most, tallest));
  else
    findings.ok("tallest tree", pass.plant_.value, "m", tallest);
}

void check_points(const CityPass& pass, const CheckedCity& checked, Findings& findings) {
  for (const SeriesPoint& point : checked.points) {
    const int64_t p = point.row * checked.city.dsm.cols() + point.col;
    if (std::isnan(CityPass::value(checked.city.dsm, p))) {
      findings.warn("points", {}, "",
                    fmt::format("point {} is on a missing pixel: all its values are NaN", point.id));
      continue;
    }
    const float above = pass.above_ground(p);
    const bool roof = std::isnan(above) ? !checked.land_cover.empty() &&
                                              CityPass::value(checked.land_cover, p) == float(kBuildingCode)
                                        : above >= kRoof;
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
  if (pass.missing_ == 0) return "0 pixels";
  const double shade = double(pass.highest_ - pass.lowest_) / std::tan(kLowSun * std::numbers::pi / 180);
  return fmt::format(
      "{} pixels: as beyond the raster's edge, nothing is seen there. Results change up to {:g} m from them, "
      "and where a "
      "building is missing up to {:.0f} m, as far as the relief's shade reaches when the sun is {:g}° high",
      pass.missing_, kGroundView, shade, kLowSun);
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
  if (pass.there_ == 0) return;  // refused later
  const double missing = 100.0 * double(pass.missing_) / double(pass.missing_ + pass.there_);
  findings.ok("missing pixels", missing, "%", missing_text(pass));
  findings.ok("heights", pass.highest_ - pass.lowest_, "m",
              fmt::format("the DSM runs from {:g} to {:g} m", pass.lowest_, pass.highest_));
  check_ground(pass, checked, findings);
  if (!checked.land_cover.empty()) findings.ok("water", pass.share(pass.water_), "%", "pixels of class 7");
  check_plants(pass, checked, findings);
  check_points(pass, checked, findings);
}

}  // namespace lockstep::urban
