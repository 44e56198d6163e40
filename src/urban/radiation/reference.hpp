// The radiation of a step in plain C++ and double precision, pixel by pixel as the formulas are printed
// (docs/urban.md): the oracle of the kernels, and what `lockstep urban stage` computes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "urban/radiation/perez.hpp"
#include "urban/radiation/step/scalars.hpp"

namespace lockstep::urban::reference {

using Reals = std::vector<double>;
inline constexpr double kPi = std::numbers::pi;
inline constexpr double kRadian = kPi / 180;
inline double power4(double t) { return t * t * t * t; }

/// The centre (all directions) and the four sides: east, south, west, north.
inline constexpr int kViews = 5;
using Views = std::array<Reals, kViews>;

// ---- View of the ground (Lindberg et al. 2016; Lindberg & Grimmond 2011) ----

struct GroundInput {
  int64_t rows = 0, cols = 0;
  double pixel_size_m = 1;
  Reals shadow;  ///< 1 = sun, ψ under a plant, 0 = shade
  Reals excess;  ///< of the sunlit ground over the air, K
  Reals wall_sun, wall_height, wall_aspect_deg;
  Reals buildings;  ///< 1 = ground, 0 = building, −1 = as outside of the raster
  Reals steady;     ///< 1 = the excess is the same in the shade; empty: nowhere
  Reals emissivity, albedo;
  double air_k = 293.15, wall_emissivity = 0.9, wall_albedo = 0.2, wall_excess_k = 0, sigma = 5.67e-8;
  int near = 1, far = 22;
  RasterEdge edge = RasterEdge::keep;
  SunlitWall sunlit_wall = SunlitWall::whole;
};

struct GroundView {
  Views lup, albedo, albedo_no_shadow;
  Reals norm;
};

/// 0 if a wall of this aspect faces the sun, else 1. With the sun in the south, 1 more for a pixel without wall.
inline int faces_away_from(double aspect_deg, bool wall, double azimuth_deg) {
  const double aspect = aspect_deg * kRadian, low = azimuth_deg * kRadian - kPi / 2, high = low + kPi;
  if (low >= 0 && high < 2 * kPi) return (aspect < low || aspect >= high) - wall + 1;
  if (low < 0) return aspect > low + 2 * kPi || aspect <= high ? 0 : 1;
  return aspect > low || aspect <= high - 2 * kPi ? 0 : 1;
}

/// Sums over the pixels of one ray, and over walls since they came into view.
struct GroundSums {
  double lup = 0, albedo = 0, sun = 0, albedo_all = 0;
  double wall_lup = 0, wall_albedo = 0, wall_sun = 0, wall_albedo_all = 0;
  bool wall_seen = false;
};

/// Contributions of the pixels and walls of a ray.
struct GroundGifts {
  Reals excess_lup;   ///< of the ground over that of the air
  Reals sunlit_wall;  ///< 1 = a wall pixel that counts as sunlit
  double base = 0, wall_lup = 0;
};
inline GroundGifts ground_gifts(const GroundInput& in) {
  const size_t pixels = static_cast<size_t>(in.rows * in.cols);
  GroundGifts g;
  g.base = power4(in.air_k);
  g.wall_lup = in.sigma * in.wall_emissivity * (power4(in.wall_excess_k + in.air_k) - g.base);
  g.excess_lup.resize(pixels);
  g.sunlit_wall.resize(pixels);
  for (size_t p = 0; p < pixels; ++p) {
    const double lit = !in.steady.empty() && in.steady[p] != 0 ? 1 : in.shadow[p];
    g.excess_lup[p] = in.sigma * in.emissivity[p] * (power4(in.excess[p] * lit + in.air_k) - g.base);
    const double share = in.wall_height[p] > 0 ? in.wall_sun[p] / in.wall_height[p] * in.buildings[p] : 0;
    g.sunlit_wall[p] = in.sunlit_wall == SunlitWall::whole ? share == 1 : share > 0;
  }
  return g;
}

/// Rows and columns from a pixel to those of its ray.
inline std::vector<std::pair<int64_t, int64_t>> ground_ray(double azimuth_deg, int far) {
  const double a = azimuth_deg * kRadian, s = std::sin(a), c = std::cos(a), t = std::tan(a);
  const bool east_west = (a >= kPi / 4 && a < 3 * kPi / 4) || (a >= 5 * kPi / 4 && a < 7 * kPi / 4);
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (int n = 0; n < far; ++n) {
    const auto across = [&](double x) { return static_cast<int64_t>(std::abs(std::nearbyint(x))); };
    steps.emplace_back((c > 0 ? -1 : 1) * (east_west ? across(n / t) : n),
                       (s > 0 ? 1 : -1) * (east_west ? n : across(n * t)));
  }
  return steps;
}

/// Sums of a pixel's ray up to `near` and up to `far`.
struct GroundRaySums {
  GroundSums close, all;
};
inline GroundRaySums walk_ground(const GroundInput& in, const GroundGifts& gifts,
                                 const std::vector<std::pair<int64_t, int64_t>>& steps, int64_t row,
                                 int64_t col) {
  GroundRaySums out;
  GroundSums& sums = out.all;
  double f = in.buildings[static_cast<size_t>(row * in.cols + col)], b = 0, l = 0, al = 0, sh = 0, all = 0,
         wall = 0;
  bool sun_seen = false, left = false;
  for (size_t n = 0; n < steps.size(); ++n) {
    const int64_t r = row + steps[n].first, q_col = col + steps[n].second;
    const bool inside = r >= 0 && r < in.rows && q_col >= 0 && q_col < in.cols;
    const size_t q = inside ? static_cast<size_t>(r * in.cols + q_col) : 0;
    left = left || !inside || in.buildings[q] < 0;
    if (!left) {
      b = in.buildings[q];
      l = gifts.excess_lup[q];
      al = in.albedo[q] * in.shadow[q];
      sh = in.shadow[q];
      all = in.albedo[q];
      wall = gifts.sunlit_wall[q];
    } else if (in.edge == RasterEdge::drop) {
      l = al = sh = all = wall = 0;
    }
    f = std::min(f, b);
    sums.lup += l * f;
    sums.albedo += al * f;
    sums.sun += sh * f;
    sums.albedo_all += all * f;
    sun_seen = sun_seen || wall * f > 0;
    sums.wall_seen = sums.wall_seen || 1 - f > 0;
    sums.wall_lup += sun_seen * gifts.wall_lup;
    sums.wall_albedo += sun_seen * in.wall_albedo;
    sums.wall_sun += sun_seen;
    sums.wall_albedo_all += sums.wall_seen * in.wall_albedo;
    if (static_cast<int>(n) + 1 <= in.near) out.close = sums;
  }
  return out;
}

/// Adds what a ray's ground gives to a pixel and to the sides that look there.
inline void add_ground_ray(const GroundInput& in, const GroundGifts& gifts, double azimuth, size_t p,
                           GroundRaySums ray, GroundView& out) {
  const GroundSums& close = ray.close;
  GroundSums& sums = ray.all;
  const bool away = faces_away_from(in.wall_aspect_deg[p], in.wall_height[p] > 0, azimuth) > 0;
  const bool own_wall = sums.wall_sun == in.far && !away;
  const auto blend = [](double ground, double of_wall, bool seen, int count) {
    return seen ? (of_wall + ground) / (count + 1) : ground / count;
  };
  const bool near_sun = close.wall_sun > 0, far_sun = sums.wall_sun > 0;
  if (own_wall) sums.wall_lup = sums.wall_albedo = sums.wall_sun = 0;
  const auto mean = [](double near, double far) { return (0.5 * near + 0.4 * far) / 0.9; };
  const double roof = 1 - in.buildings[p];
  const double lup = mean(blend(close.lup, close.wall_lup, near_sun, in.near),
                          blend(sums.lup, sums.wall_lup, far_sun, in.far)) +
                     gifts.excess_lup[p] * roof;
  const double albedo = mean(blend(close.albedo, close.wall_albedo, near_sun, in.near),
                             blend(sums.albedo, sums.wall_albedo, far_sun, in.far)) +
                        in.albedo[p] * in.shadow[p] * roof;
  const double far_all =
      sums.wall_seen ? (sums.wall_albedo_all + sums.albedo_all) / in.far : sums.albedo_all / in.far;
  const double all_albedo =
      mean(blend(close.albedo_all, close.wall_albedo_all, close.wall_seen, in.near), far_all) *
          in.buildings[p] +
      in.albedo[p] * roof;
  out.norm[p] += std::min(1.0, blend(sums.sun, sums.wall_sun, far_sun, in.far)) / kGroundRays;
  const bool in_view[kViews] = {true, azimuth < 180, azimuth >= 90 && azimuth < 270, azimuth >= 180,
                                azimuth >= 270 || azimuth < 90};
  for (size_t v = 0; v < kViews; ++v) {
    if (!in_view[v]) continue;
    const double weight = 1.0 / (v == 0 ? kGroundRays : kGroundRays / 2);
    out.lup[v][p] += lup * weight;
    out.albedo[v][p] += albedo * weight;
    out.albedo_no_shadow[v][p] += all_albedo * weight;
  }
}

inline GroundView ground_view(const GroundInput& in) {
  const size_t pixels = static_cast<size_t>(in.rows * in.cols);
  GroundView out;
  for (Views* views : {&out.lup, &out.albedo, &out.albedo_no_shadow})
    for (Reals& grid : *views) grid.assign(pixels, 0.0);
  out.norm.assign(pixels, 0.0);
  const GroundGifts gifts = ground_gifts(in);
  for (int ray = 0; ray < kGroundRays; ++ray) {
    const double azimuth = ground_azimuth_deg(ray);
    const auto steps = ground_ray(azimuth, in.far);
    for (int64_t row = 0; row < in.rows; ++row)
      for (int64_t col = 0; col < in.cols; ++col)
        add_ground_ray(in, gifts, azimuth, static_cast<size_t>(row * in.cols + col),
                       walk_ground(in, gifts, steps, row, col), out);
  }
  for (size_t p = 0; p < pixels; ++p) {
    if (in.buildings[p] == 0) out.norm[p] = 1;
    for (Reals& grid : out.lup) grid[p] += in.sigma * in.emissivity[p] * gifts.base;
  }
  return out;
}

// ---- Delay of warmth ----

inline void delay(const DelayStep& step, Reals& x, Reals& previous) {
  for (size_t p = 0; p < x.size(); ++p) {
    if (step.first) previous[p] = x[p];
    x[p] = x[p] * (1 - step.weight) + previous[p] * step.weight;
    if (step.keep) previous[p] = x[p];
  }
}

// ---- Vertical sides under an isotropic sky ----

inline constexpr double kSideTotal = 4.4897;
/// Weight of a view factor on a vertical side (Lindberg, Holmer & Thorsson 2008).
inline double side_weight(double x) {
  const double x2 = x * x, x3 = x2 * x;
  return 63.227 * x3 * x3 - 161.51 * x3 * x2 + 156.91 * x2 * x2 - 70.424 * x3 + 16.773 * x2 - 0.4863 * x;
}

/// Share of wall surfaces in shadow (UMEP's cylindrical wedge), as printed.
inline double wall_shadow_share(double zenith_rad, double alpha) {
  const double tan_alpha = std::tan(alpha), ba = 1 / tan_alpha, tan_beta = std::tan(zenith_rad);
  const double product = tan_alpha * tan_beta, xa = 1 - 2 / product, ha = 2 / product, hk = 2 * ba * ha;
  double uk = 0;
  if (xa < 0) {
    const double qa = tan_beta / 2, za = std::sqrt(ba * ba - qa * qa / 4), phi = std::atan(za / qa);
    const double a = (std::sin(phi) - phi * std::cos(phi)) / (1 - std::cos(phi));
    uk = 2 * ba * xa * a;
  }
  const double share = (2 * kPi * ba - (hk + uk)) / (2 * kPi * ba);
  return std::isnan(share) ? 0.5 : share;
}

/// One side of the body.
struct SideSky {
  double svf, veg, aveg;
};

inline double shortwave_side(const SideSky& sky, double diffuse, double wall_albedo, double mix, double psi,
                             double kup, double direct) {
  const double walls = (kSideTotal - side_weight(sky.svf)) / kSideTotal;
  const double plants = (kSideTotal - side_weight(sky.svf + sky.veg - 1)) / kSideTotal - walls;
  const double covered = walls + plants * (1 - psi);
  return direct + 0.5 * (diffuse * (1 - covered) + wall_albedo * covered * mix + kup);
}

struct LongwaveSide {
  double sigma, air_k, emissivity;  ///< of the sky with clouds
  double wall_emissivity, wall_excess_k;
  double sun;  ///< sine of the sun over the wall, below 0 where it does not face it
  double shadow_share, ldown, lup;
  bool closed = false;  ///< parts add up to 1, and walls receive the mean of ldown and lup
};
inline double longwave_side(const SideSky& sky, const LongwaveSide& in) {
  const double ew = in.wall_emissivity, air = in.sigma * power4(in.air_k);
  const double only = (kSideTotal - side_weight(sky.svf)) / kSideTotal;
  const double after = (kSideTotal - side_weight(sky.aveg)) / kSideTotal;
  const double wall = only - after, open = sky.svf + sky.veg - 1;
  const double view_sky = side_weight(open) / kSideTotal, reflected = 1 - view_sky, plants = reflected - wall;
  double lit = 0, shaded = air * ew * wall * 0.5;
  if (in.sun >= 0) {
    const double alpha = std::asin(std::sqrt(1 - sky.svf)), share = 2 * in.shadow_share - 1;
    const double a = std::atan(alpha), b = std::atan(std::tan(alpha * share)), beta = (a - b) / 2 + b;
    lit = in.sigma * ew * power4(in.air_k + in.wall_excess_k * in.sun) * wall * (1 - share) * std::cos(beta) *
          0.5;
    shaded = air * ew * wall * (in.closed ? 1 - (1 - share) * std::cos(beta) : share) * 0.5;
  }
  const double seen_sky = in.closed ? view_sky : open * view_sky;
  return lit + shaded + seen_sky * air * in.emissivity * 0.5 + air * ew * plants * 0.5 + in.lup * 0.5 +
         (in.ldown + in.lup) * (in.closed ? 0.5 : 1.0) * reflected * (1 - ew) * 0.5;
}

/// Longwave from above under an isotropic sky.
inline double longwave_down(double svf, double veg, double aveg, double sky_emissivity, double air_k,
                            double wall_excess_k, double ew, double sigma) {
  const double air = sigma * power4(air_k);
  return (svf + veg - 1) * sky_emissivity * air + (2 - veg - aveg) * ew * air +
         (aveg - svf) * ew * sigma * power4(air_k + wall_excess_k) +
         (2 - svf - veg) * (1 - ew) * sky_emissivity * air;
}

// ---- Mean radiant temperature ----

struct BodyFluxes {
  double kdown, kup, kside_curved, ldown, lup, lside_curved;
  std::array<double, 4> kside, lside;
};
inline double mean_radiant_temperature(const BodyFluxes& f, const BodyFactors& body, double abs_k,
                                       double abs_l, double sigma, double kelvin) {
  double k = f.kside_curved * body.curved + (f.kdown + f.kup) * body.up;
  double l = f.lside_curved * body.curved + (f.ldown + f.lup) * body.up;
  for (size_t d = 0; d < 4; ++d) {
    k += f.kside[d] * body.side;
    l += f.lside[d] * body.side;
  }
  return std::sqrt(std::sqrt((abs_k * k + abs_l * l) / (abs_l * sigma))) - kelvin;
}

}  // namespace lockstep::urban::reference
