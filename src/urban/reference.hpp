// The model in plain C++: what the kernels must reproduce. In float it compares heights exactly as the
// kernels do; in double it shows what single precision costs. Formulas and sources: README.md.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <type_traits>
#include <vector>

#include "urban/city/prepare.hpp"
#include "urban/rays/steps.hpp"
#include "urban/sky/patches.hpp"
#include "urban/sky/svf_weights.hpp"
#include "urban/walls/wall_templates.hpp"

namespace lockstep::urban::reference {

/// A ray that meets objects step by step.
template <class Real>
class Ray {
 public:
  /// `vegetation`: a bush is on the target itself.
  Ray(Real height, bool vegetation) : height_(height), vegetation_(vegetation) {}

  /// The ray has risen `rise` above the target and passes over a pixel of these heights; `before` is its rise
  /// a step ago. A plant is in the way where the ray is inside its crown at one of both rises, or passes
  /// through it between them: 1, 2 or 3 of the four comparisons hold. All four: the ray runs below the crown.
  void pass(Real dsm, Real canopy, Real trunk, Real rise, Real before) {
    if (dsm - rise > height_) building_ = true;
    const int inside = (canopy - rise > height_) + (trunk - rise > height_) + (canopy - before > height_) +
                       (trunk - before > height_);
    if (inside > 0 && inside < 4) vegetation_ = true;
    if (building_) vegetation_ = false;
    if (vegetation_) counted_ = true;
  }

  bool building() const { return building_; }
  SkyState state() const {
    if (building_) return counted_ ? SkyState::vegetation_before_building : SkyState::building;
    return vegetation_ ? SkyState::vegetation : SkyState::sky;
  }

 private:
  Real height_;
  bool vegetation_;
  bool building_ = false;
  bool counted_ = false;
};

/// The three published bits of a state: no building in the way; not shaded by a plant alone; no plant before
/// a building.
inline bool sees_past_buildings(SkyState s) { return s == SkyState::sky || s == SkyState::vegetation; }
inline bool sees_past_vegetation(SkyState s) { return s != SkyState::vegetation; }
inline bool no_vegetation_before_building(SkyState s) { return s != SkyState::vegetation_before_building; }

/// Result of one direction at every pixel. Missing pixels: state sky, heights 0.
template <class Real>
struct Cast {
  std::vector<SkyState> state;
  std::vector<Real> shade_height;  ///< height up to which buildings shade the pixel; at least its own
  std::vector<Real>
      canopy_depth;  ///< how far the shade of plants reaches above the pixel (m), 0 if not shaded by plants
};

/// Casts a ray from every pixel. `heights` = false stops a ray at the first building and leaves both height
/// grids empty.
template <class Real>
Cast<Real> cast(const City& city, const std::vector<RayStep>& steps, bool heights) {
  const std::span<const float> dsms = city.dsm.as<float>(), canopies = city.canopy.as<float>(),
                               trunks = city.trunk.as<float>();
  const size_t pixels = dsms.size();
  Cast<Real> out;
  out.state.assign(pixels, SkyState::sky);
  if (heights) {
    out.shade_height.assign(pixels, Real(0));
    out.canopy_depth.assign(pixels, Real(0));
  }
  const bool plants = city.has_vegetation();
  for (int64_t row = 0; row < city.rows; ++row)
    for (int64_t col = 0; col < city.cols; ++col) {
      const size_t p = static_cast<size_t>(row * city.cols + col);
      if (dsms[p] == kNoHeight) continue;
      const Real height = dsms[p];
      Ray<Real> ray(height, city.is_bush(static_cast<int64_t>(p)));
      Real shade = height;
      Real crown = plants ? Real(canopies[p]) : Real(0);
      Real before = 0;
      for (const RayStep& step : steps) {
        const Real rise = static_cast<Real>(step.rise_m);
        const int64_t r = row + step.drow, c = col + step.dcol;
        if (r < 0 || r >= city.rows || c < 0 || c >= city.cols) break;  // a ray never comes back
        const size_t q = static_cast<size_t>(r * city.cols + c);
        const Real dsm = dsms[q];
        const Real canopy = plants ? canopies[q] : Real(0), trunk = plants ? trunks[q] : Real(0);
        ray.pass(dsm, canopy, trunk, rise, before);
        shade = std::max(shade, dsm - rise);
        crown = std::max(crown, canopy - rise);
        before = rise;
        if (!heights && ray.building()) break;
      }
      out.state[p] = ray.state();
      if (!heights) continue;
      out.shade_height[p] = shade;
      if (ray.state() == SkyState::vegetation) out.canopy_depth[p] = std::max(Real(0), crown - height);
    }
  return out;
}

/// Height of the wall next to each pixel: the highest of its four neighbours above it, 0 below the limit and
/// at the border.
template <class Real>
std::vector<Real> wall_height(const City& city, double minimum_m) {
  const std::span<const float> dsm = city.dsm.as<float>();
  std::vector<Real> walls(dsm.size(), Real(0));
  for (int64_t row = 1; row + 1 < city.rows; ++row)
    for (int64_t col = 1; col + 1 < city.cols; ++col) {
      const size_t p = static_cast<size_t>(row * city.cols + col), stride = static_cast<size_t>(city.cols);
      if (dsm[p] == kNoHeight) continue;
      const Real top = std::max({dsm[p - stride], dsm[p + stride], dsm[p - 1], dsm[p + 1]});
      const Real height = top - Real(dsm[p]);
      if (height >= static_cast<Real>(minimum_m)) walls[p] = height;
    }
  return walls;
}

/// Slope direction (degrees, 0 ≤ d < 360) from differences of the neighbours, one-sided at the border: the
/// angle of the southward against the eastward rise, turned. What a wall takes whose filter answers exactly
/// north, or that has none.
template <class Real>
Real slope_aspect(const City& city, int64_t row, int64_t col) {
  const auto height = [&](int64_t r, int64_t c) {
    const float h = city.dsm.at<float>(r, c);
    return h == kNoHeight ? Real(0) : Real(h);
  };
  const auto rise = [&](int64_t low, int64_t at, int64_t last, auto value) {
    const int64_t a = std::max<int64_t>(at - 1, low), b = std::min(at + 1, last);
    if (a == b) return Real(0);
    return (value(b) - value(a)) / (static_cast<Real>(city.pixel_size_m) * static_cast<Real>(b - a));
  };
  const Real south = rise(0, row, city.rows - 1, [&](int64_t r) { return height(r, col); });
  const Real east = rise(0, col, city.cols - 1, [&](int64_t c) { return height(row, c); });
  Real angle = -std::atan2(east, south);
  if (angle < 0) angle += static_cast<Real>(2 * std::numbers::pi);
  return angle * static_cast<Real>(180 / std::numbers::pi);
}

/// The way walls face. The angle whose line covers the most wall pixels counts; the side of higher ground lies
/// behind. Where all angles are equal there is no line; by the first of them, an answer of exactly north counts
/// as none.
template <class Real>
std::vector<Real> wall_aspect(const City& city, const std::vector<Real>& walls,
                              const WallOptions& options = {}) {
  const std::span<const float> dsm = city.dsm.as<float>();
  const WallTemplates templates = wall_templates(wall_template_side(city.pixel_size_m, options.filter));
  const bool middle = options.ties == WallTies::middle;
  const int n = templates.side, half = n / 2;
  const size_t area = static_cast<size_t>(n * n);
  std::vector<Real> aspect(walls.size(), Real(0));
  const int64_t first = templates.margin();
  for (int64_t row = 0; row < city.rows; ++row)
    for (int64_t col = 0; col < city.cols; ++col) {
      const size_t p = static_cast<size_t>(row * city.cols + col);
      if (!(walls[p] > 0)) continue;
      bool found = false;
      if (row >= first && col >= first && row < city.rows - first - 2 && col < city.cols - first - 2) {
        std::vector<int> counts;
        for (int h = 0; h < kWallAngles; ++h) {
          int covered = 0;
          for (size_t k = 0; k < area; ++k) {
            const int64_t dr = static_cast<int64_t>(k) / n - half, dc = static_cast<int64_t>(k) % n - half;
            if (templates.lines[static_cast<size_t>(h) * area + k])
              covered += walls[static_cast<size_t>((row + dr) * city.cols + col + dc)] > 0;
          }
          counts.push_back(covered);
        }
        AngleRun run = best_angles(counts);
        if (!middle)
          run.first = run.last =
              static_cast<int>(std::max_element(counts.begin(), counts.end()) - counts.begin());
        const int angle = run.nearest();
        double one = 0, two = 0;
        for (size_t k = 0; k < area; ++k) {
          const int64_t dr = static_cast<int64_t>(k) / n - half, dc = static_cast<int64_t>(k) % n - half;
          const size_t q = static_cast<size_t>((row + dr) * city.cols + col + dc);
          const double height = dsm[q] == kNoHeight ? 0.0 : dsm[q];
          const uint8_t side = templates.sides[static_cast<size_t>(angle) * area + k];
          if (side == 1) one += height;
          if (side == 2) two += height;
        }
        aspect[p] = static_cast<Real>(wall_direction(run.middle(), one > two));
        found = middle ? run.last - run.first < kWallAngles - 1 : aspect[p] != 0;
      }
      if (!found) aspect[p] = slope_aspect<Real>(city, row, col);
    }
  return aspect;
}

template <class Real>
struct WallSun {
  std::vector<Real> sun;
  std::vector<Real> shadow;
};

/// 0 where the wall faces the sun, otherwise 1 (at walls), by the published branches.
template <class Real>
int faces_away(Real aspect_rad, bool wall, double azimuth_rad) {
  constexpr double pi = std::numbers::pi;
  const Real low = static_cast<Real>(azimuth_rad - pi / 2), high = static_cast<Real>(azimuth_rad + pi / 2);
  const Real turn = static_cast<Real>(2 * pi);
  if (azimuth_rad - pi / 2 >= 0 && azimuth_rad + pi / 2 < 2 * pi)
    return (aspect_rad < low || aspect_rad >= high) - wall + 1;
  if (azimuth_rad - pi / 2 < 0) return !(aspect_rad > low + turn || aspect_rad <= high);
  return !(aspect_rad > low || aspect_rad <= high - turn);
}

/// The sun that a point of a wall sees at the end of a ray: a wall that faces away sees the building itself. The point has no
/// bush of its own.
template <class Real>
SkyState wall_state(const City& city, const std::vector<RayStep>& steps, int64_t pixel, Real aspect_deg,
                    Real height, double azimuth_deg) {
  double azimuth = std::fmod(azimuth_deg, 360.0);
  if (azimuth < 0) azimuth += 360;
  const Real aspect = aspect_deg * static_cast<Real>(std::numbers::pi / 180);
  if (faces_away(aspect, true, azimuth * std::numbers::pi / 180)) return SkyState::building;
  const bool plants = city.has_vegetation();
  Ray<Real> ray(height, false);
  Real before = 0;
  for (const RayStep& step : steps) {
    const int64_t r = pixel / city.cols + step.drow, c = pixel % city.cols + step.dcol;
    if (r < 0 || r >= city.rows || c < 0 || c >= city.cols) break;
    const auto at = [&](const Array& grid) { return Real(grid.at<float>(r, c)); };
    const Real rise = static_cast<Real>(step.rise_m);
    ray.pass(at(city.dsm), plants ? at(city.canopy) : Real(0), plants ? at(city.trunk) : Real(0), rise,
             before);
    before = rise;
  }
  return ray.state();
}

/// Sunlit and shaded height of walls from a cast with heights.
template <class Real>
WallSun<Real> shade_walls(const City& city, const Cast<Real>& rays, const std::vector<Real>& walls,
                          const std::vector<Real>& aspect_deg, double azimuth_deg) {
  const std::span<const float> dsm = city.dsm.as<float>();
  double azimuth = std::fmod(azimuth_deg, 360.0);
  if (azimuth < 0) azimuth += 360;
  azimuth *= std::numbers::pi / 180;
  WallSun<Real> out{std::vector<Real>(walls.size(), Real(0)), std::vector<Real>(walls.size(), Real(0))};
  for (size_t p = 0; p < walls.size(); ++p) {
    if (dsm[p] == kNoHeight) continue;
    const Real wall = walls[p];
    const Real aspect = aspect_deg[p] * static_cast<Real>(std::numbers::pi / 180);
    Real sun = std::max(Real(0), wall - (rays.shade_height[p] - Real(dsm[p])));
    if (faces_away(aspect, wall > 0, azimuth) == 1) sun = 0;
    const Real shadow = wall - sun;
    const Real leaves = std::min(std::max(rays.canopy_depth[p] - shadow, Real(0)), wall);
    out.sun[p] = std::max(sun - leaves, Real(0));
    out.shadow[p] = shadow;
  }
  return out;
}

/// Packed states of every pixel and patch.
template <class Real>
PackedSky sky_states(const City& city, const SkyDivision& sky, const SkyOptions& options) {
  PackedSky packed{city.rows, city.cols, static_cast<int>(sky.patches.size()), {}};
  const auto pixels = static_cast<size_t>(city.pixels());
  packed.words.assign(pixels * static_cast<size_t>(packed.words_per_pixel()), 0u);
  const RayBounds bounds{city.rows, city.cols, city.pixel_size_m, city.relief_m(), options.rays.max_reach_m};
  for (size_t k = 0; k < sky.patches.size(); ++k) {
    if (options.zenith == ZenithRule::open && sky.patches[k].altitude_deg >= 89.5) continue;
    const Cast<Real> rays = cast<Real>(city, ray_steps(sky.patches[k], bounds), false);
    for (size_t p = 0; p < pixels; ++p)
      packed.words[k / 16 * pixels + p] |= static_cast<uint32_t>(rays.state[p]) << (2 * (k % 16));
  }
  return packed;
}

/// The 15 grids from packed states: whole counts a band and sector, times the weight of a patch.
template <class Real>
std::array<std::vector<Real>, kSkyViewGrids> sky_view(const City& city, const SkyDivision& sky,
                                                      const PackedSky& packed) {
  const std::vector<PatchWeight> weights = patch_weights(sky);
  std::array<std::vector<Real>, kSkyViewGrids> grids;
  const auto pixels = static_cast<size_t>(city.pixels());
  const std::span<const float> trunk = city.trunk.as<float>();
  const bool plants = city.has_vegetation();
  for (auto& grid : grids) grid.assign(pixels, std::numeric_limits<Real>::quiet_NaN());
  for (size_t p = 0; p < pixels; ++p) {
    if (city.is_missing(static_cast<int64_t>(p))) continue;
    const auto state = [&](int patch) {
      const size_t k = static_cast<size_t>(patch);
      return static_cast<SkyState>(packed.words[k / 16 * pixels + p] >> (2 * (k % 16)) & 3u);
    };
    // Single precision adds whole units of weight, as the kernels do; double precision adds the weights.
    using Sum = std::conditional_t<std::is_same_v<Real, float>, uint32_t, double>;
    const auto weighed = [](double weight) {
      if constexpr (std::is_same_v<Sum, uint32_t>)
        return weight_units(weight);
      else
        return weight;
    };
    std::array<Sum, kSkyViewGrids> sums{};
    for (size_t band = 0; band < sky.bands.size(); ++band) {
      std::array<int, kSkyViewGrids> counts{};
      for (int j = sky.bands[band].first; j < sky.bands[band].first + sky.bands[band].count; ++j)
        for (int sector = 0; sector < kSectors; ++sector) {
          if (!in_sector(sky.patches[static_cast<size_t>(j)].azimuth_deg, static_cast<Sector>(sector)))
            continue;
          counts[static_cast<size_t>(sector)] += sees_past_buildings(state(j));
          counts[static_cast<size_t>(kSectors + sector)] += sees_past_vegetation(state(j));
          counts[static_cast<size_t>(2 * kSectors + sector)] += no_vegetation_before_building(state(j));
        }
      for (size_t g = 0; g < kSkyViewGrids; ++g)
        sums[g] += static_cast<Sum>(counts[g]) *
                   weighed(g % kSectors == 0 ? weights[band].whole : weights[band].half);
    }
    for (size_t g = 0; g < kSkyViewGrids; ++g) {
      const auto sector = static_cast<Sector>(g % kSectors);
      const bool corrected = (sector == Sector::south || sector == Sector::west) &&
                             (g < kSectors || !plants || trunk[p] == 0.0f);
      if (corrected) sums[g] += weighed(kSouthWestCorrection);
      Real factor = static_cast<Real>(sums[g]);
      if constexpr (std::is_same_v<Sum, uint32_t>) factor *= static_cast<Real>(kWeightUnit);
      grids[g][p] = g >= kSectors && !plants ? Real(1) : std::min(factor, Real(1));
    }
  }
  return grids;
}

}  // namespace lockstep::urban::reference
