// A whole step in plain C++ and double precision, from shadows and sky states to the mean radiant temperature.
#pragma once

#include <memory>

#include "urban/city/prepare.hpp"
#include "urban/radiation/reference.hpp"
#include "urban/radiation/sky_luminance.hpp"
#include "urban/radiation/step/step_table.hpp"
#include "urban/reference.hpp"
#include "urban/sky/svf_weights.hpp"

namespace lockstep::urban::reference {

/// Input of a step, whole grids. View factors in the order of kSkyViewNames, 1 of plants where there are
/// none.
struct StepGrids {
  int64_t rows = 0, cols = 0;
  double pixel_size_m = 1;
  Reals buildings, wall_height, wall_aspect_deg;
  std::vector<int32_t> cover;  ///< rows of the land cover; empty: bare
  std::array<Reals, kSkyViewGrids> view;
  PackedSky states;
  SkyDivision sky;
  // By the sun's position:
  Reals sun, vegetation, wall_sun;  ///< published bits of the shadow, sunlit height of walls

  size_t pixels() const { return static_cast<size_t>(rows * cols); }
};

/// Half-sky factors relative to those of flat ground.
inline void even_half_skies(StepGrids& g, bool plants) {
  const std::array<double, 4> flat = flat_half_skies(g.sky);
  for (size_t k = 0; k < g.view.size(); ++k)
    for (double& x : g.view[k])
      if (k % 5 != 0 && (k < 5 || plants)) x = std::min(1.0, x / flat[k % 5 - 1]);
}

/// The same from a city: shadows and states with the single-precision comparisons of the kernels, or in double
/// precision.
template <class Real = float>
StepGrids step_grids(const City& city, const Walls& walls, const std::vector<int32_t>& codes,
                     const RadiationOptions& options, const StepForcing& f) {
  StepGrids g;
  g.rows = city.rows;
  g.cols = city.cols;
  g.pixel_size_m = city.pixel_size_m;
  const std::vector<uint8_t> ground = ground_mask(city);
  g.buildings.assign(ground.begin(), ground.end());
  for (size_t p = 0; p < ground.size() && options.constants.holes_are_edges; ++p)
    if (city.is_missing(static_cast<int64_t>(p))) g.buildings[p] = -1;
  for (int32_t code : codes)
    for (size_t k = 0; k < options.land_cover.size(); ++k)
      if (options.land_cover[k].code == code) g.cover.push_back(static_cast<int32_t>(k));
  g.wall_height.assign(walls.height.pixels().begin(), walls.height.pixels().end());
  g.wall_aspect_deg.assign(walls.aspect.pixels().begin(), walls.aspect.pixels().end());
  SkyOptions view = options.view;
  view.rays.max_reach_m = longest_ray_m(city, options);
  g.sky = sky_division(view.patches, view.edges);
  g.states = sky_states<Real>(city, g.sky, view);
  const auto grids = sky_view<Real>(city, g.sky, g.states);
  for (size_t k = 0; k < grids.size(); ++k) g.view[k].assign(grids[k].begin(), grids[k].end());
  if (options.constants.even_sides) even_half_skies(g, city.has_vegetation());
  g.sun.assign(g.pixels(), 0.0);
  g.vegetation = g.wall_sun = g.sun;
  if (!f.day()) return g;
  const RayBounds bounds{city.rows, city.cols, city.pixel_size_m, city.relief_m(), view.rays.max_reach_m};
  const auto rays = cast<Real>(city, ray_steps({f.sun_azimuth_deg, f.sun_altitude_deg}, bounds), true);
  const std::vector<Real> heights(walls.height.pixels().begin(), walls.height.pixels().end()),
      aspects(walls.aspect.pixels().begin(), walls.aspect.pixels().end());
  const auto lit = shade_walls<Real>(city, rays, heights, aspects, f.sun_azimuth_deg);
  g.wall_sun.assign(lit.sun.begin(), lit.sun.end());
  for (size_t p = 0; p < g.pixels(); ++p) {
    g.sun[p] = sees_past_buildings(rays.state[p]);
    g.vegetation[p] = sees_past_vegetation(rays.state[p]);
  }
  return g;
}

/// State carried to the next step.
struct StepState {
  WaveDelay clock;
  Views lup;
};

/// The planes of RadiationOutput, then what vertical planes receive that face east, south, west and north: shortwave,
/// longwave.
inline constexpr size_t kSidePlanes = 8;
using StepPlanes = std::array<Reals, kRadiationOutputs + kSidePlanes>;

/// The ground view of a step, delayed; at night air-warm ground.
inline GroundView ground_of_step(const StepGrids& g, const StepForcing& f, const RadiationOptions& o,
                                 const Reals& shadow, StepState& state) {
  const Constants& c = o.constants;
  const size_t pixels = g.pixels();
  GroundInput in;
  in.rows = g.rows;
  in.cols = g.cols;
  in.pixel_size_m = g.pixel_size_m;
  in.shadow = shadow;
  in.wall_sun = g.wall_sun;
  in.wall_height = g.wall_height;
  in.wall_aspect_deg = g.wall_aspect_deg;
  in.buildings = g.buildings;
  for (size_t p = 0; p < pixels; ++p)
    if (g.buildings[p] <= 0) in.wall_height[p] = in.wall_sun[p] = 0;
  const bool covers = !g.cover.empty();
  const std::vector<double> excess = ground_excess(f, o, covers);
  for (size_t p = 0; p < pixels; ++p) {
    const SurfaceRow& row = covers ? o.land_cover[static_cast<size_t>(g.cover[p])] : o.bare;
    in.excess.push_back(excess[covers ? static_cast<size_t>(g.cover[p]) : 0]);
    in.emissivity.push_back(row.emissivity);
    in.albedo.push_back(row.albedo);
    in.steady.push_back(covers && keeps_temperature(row, c));
  }
  in.air_k = f.air_c + c.kelvin;
  in.wall_emissivity = o.wall.emissivity;
  in.wall_albedo = o.wall.albedo;
  in.wall_excess_k = wall_excess(f, o);
  in.sigma = c.sigma;
  const GroundReach reach = ground_reach(o, g.pixel_size_m);
  in.near = reach.near;
  in.far = reach.far;
  in.edge = c.edge;
  in.sunlit_wall = c.sunlit_wall;
  GroundView view = ground_view(in);
  if (f.day()) {
    const DelayStep step = advance(state.clock, f.step_days, c.delay_in_windows);
    for (size_t v = 0; v < kViews; ++v) {
      state.lup[v].resize(pixels);
      delay(step, view.lup[v], state.lup[v]);
    }
    return view;
  }
  state.clock = {};
  for (size_t v = 0; v < kViews; ++v)
    for (size_t p = 0; p < pixels; ++p) {
      view.lup[v][p] = c.sigma * in.emissivity[p] * power4(in.air_k + in.steady[p] * in.excess[p]);
      view.albedo[v][p] = 0;
    }
  view.norm.assign(pixels, 0.0);
  return view;
}

/// Integrals of a patch's cosines by midpoints.
inline std::vector<PatchCosines> integrated_cosines(const SkyDivision& sky) {
  constexpr int kAcross = 1000;
  constexpr double kAround = 0.02;  // degrees
  const double half = sky.bands.front().altitude_deg;
  std::vector<PatchCosines> all;
  for (size_t k = 0; k < sky.patches.size(); ++k) {
    const SkyBand& band = sky.bands[static_cast<size_t>(sky.band_of_patch[k])];
    const bool zenith = band.altitude_deg == 90;
    const double width = 360.0 / band.count, high = zenith ? 90 : band.altitude_deg + half,
                 low =
                     zenith ? sky.bands[sky.bands.size() - 2].altitude_deg + half : band.altitude_deg - half;
    PatchCosines c{};
    for (int i = 0; i < kAcross; ++i) {
      const double p = (low + (i + 0.5) * (high - low) / kAcross) * kRadian,
                   angle = (high - low) * kRadian / kAcross * width * kRadian * std::cos(p);
      c.down += angle * std::sin(p);
      c.side += angle * std::cos(p);
    }
    for (size_t d = 0; d < 4; ++d) {
      double mean = 0;
      const int around = static_cast<int>(std::ceil(width / kAround));
      for (int i = 0; i < around; ++i) {
        const double azimuth = sky.patches[k].azimuth_deg + ((i + 0.5) / around - 0.5) * width;
        mean += std::max(0.0, std::cos((azimuth - 90.0 * static_cast<double>(d + 1)) * kRadian)) / around;
      }
      c.faces[d] = c.side * mean;
    }
    all.push_back(c);
  }
  return all;
}

/// Common to all pixels of a step.
struct StepContext {
  const StepGrids& g;
  const StepForcing& f;
  const RadiationOptions& o;
  StepScalars s;
  Reals shadow;  ///< 1 = sun, psi under a plant, 0 = shade
  GroundView ground;
  std::vector<double> luminance;  ///< of the patches
  std::vector<PatchCosines> cosines;
  BodyFactors body;
  double psi = 0, view_psi = 0;

  StepContext(const StepGrids& grids, const StepForcing& forcing, const RadiationOptions& options,
              StepState& state)
      : StepContext(grids, forcing, options) {
    ground = ground_of_step(g, f, o, shadow, state);
  }
  /// Without the view of the ground.
  StepContext(const StepGrids& grids, const StepForcing& forcing, const RadiationOptions& options)
      : g(grids), f(forcing), o(options), s(step_scalars(forcing, options)), shadow(grids.pixels(), 0.0) {
    psi = f.canopy_transmissivity;
    view_psi = o.constants.seasonal_canopy ? psi : o.constants.leaf_on;
    for (size_t p = 0; p < g.pixels() && s.day; ++p) shadow[p] = g.sun[p] - (1 - g.vegetation[p]) * (1 - psi);
    luminance.assign(g.sky.patches.size(), 0.0);
    if (s.day && anisotropic())
      luminance = row_of(o.sky).luminance(
          g.sky.patches, {f.sun_altitude_deg, f.sun_azimuth_deg, f.diffuse_w_m2, f.beam_w_m2, f.day_of_year},
          o.constants);
    body = body_factors(o.posture, o.constants);
    if (anisotropic())
      cosines = o.constants.exact_patches ? integrated_cosines(g.sky) : patch_cosines(g.sky, false);
    if (box()) body.curved = body.side;  // takes the sum over its faces
  }
  bool anisotropic() const { return has_patches(o.sky); }
  bool box() const { return o.body == Body::box; }
  double air_k() const { return f.air_c + o.constants.kelvin; }
};

/// Longwave and shortwave of the patches on a pixel.
struct PatchFluxes {
  double luminance = 0, kside = 0, lside = 0, ldown = 0;
  std::array<double, 4> kface{}, lface{};  // vertical planes
};

/// Share of the longwave from above that a pixel's ground reflects: 0 as published.
inline double ground_reflects(const StepContext& x, size_t pixel) {
  if (!x.o.constants.closed_longwave) return 0;
  return 1 -
         (x.g.cover.empty() ? x.o.bare : x.o.land_cover[static_cast<size_t>(x.g.cover[pixel])]).emissivity;
}

/// Longwave from above and below of surfaces that reflect each other's, by iteration: walls reflect `share` of both, the
/// ground `ground` of what comes from above.
inline std::pair<double, double> exchange(double given, double share, double emitted, double ground) {
  double down = given, up = emitted;
  for (int k = 0; k < 200; ++k) {
    down = given + share * (down + up);
    up = emitted + ground * down;
  }
  return {down, up};
}

inline PatchFluxes patch_fluxes(const StepContext& x, size_t pixel, double lup) {
  const StepGrids& g = x.g;
  const StepForcing& f = x.f;
  const RadiationOptions& o = x.o;
  const Constants& c = o.constants;
  const StepScalars& s = x.s;
  const std::vector<double>& luminance = x.luminance;
  const double air = c.sigma * power4(f.air_c + c.kelvin), ew = o.wall.emissivity;
  const double lit_wall = c.sigma * ew * power4(f.air_c + c.kelvin + s.wall_excess_k);
  const double asvf = std::acos(std::sqrt(g.view[0][pixel]));
  const double sun = f.sun_altitude_deg * kRadian;
  const auto dullness = [&](size_t k) {
    return std::exp(0.308 * (1.7 - 1 / std::cos(kPi / 2 - g.sky.patches[k].altitude_deg * kRadian)));
  };
  double total = 0, dull = 0;
  for (size_t k = 0; k < luminance.size(); ++k) {
    total += luminance[k] * x.cosines[k].down;
    dull += dullness(k) * x.cosines[k].down / kPi;
  }
  if (!c.exact_patches) dull = 1;
  PatchFluxes out;
  double sky_down = 0, hidden_side = 0, hidden_down = 0;
  std::array<double, 4> hidden_face{};
  const size_t pixels = g.pixels();
  for (size_t k = 0; k < g.sky.patches.size(); ++k) {
    const auto state = static_cast<SkyState>(g.states.words[k / 16 * pixels + pixel] >> (2 * (k % 16)) & 3u);
    const double p = g.sky.patches[k].altitude_deg * kRadian, azimuth = g.sky.patches[k].azimuth_deg;
    const double down = x.cosines[k].down;
    const std::array<double, 4>& faces = x.cosines[k].faces;
    const double side = o.body == Body::box ? faces[0] + faces[1] + faces[2] + faces[3] : x.cosines[k].side;
    const double apart = std::abs(azimuth - f.sun_azimuth_deg);
    double shortwave = s.wall_albedo * s.diffuse * 0.5 / kPi;
    double longwave = ew * air / kPi;
    if (state == SkyState::sky) {
      longwave = (1 - (1 - s.sky_emissivity) * dullness(k) / dull) * air / kPi;
      shortwave = s.day ? luminance[k] * s.diffuse / total : 0;
      out.luminance += luminance[k];
      sky_down += longwave * down;
    } else {
      hidden_side += side;
      hidden_down += down;
      if (state == SkyState::vegetation) out.luminance += luminance[k] * f.canopy_transmissivity;
      const double low = s.day ? std::min(0.0, 2 * std::cos(apart * kRadian) * std::tan(sun)) : 0.0;
      const double lit_above = std::atan(std::tan(asvf) + low);
      if (state == SkyState::building && lit_above < p) {
        shortwave = s.wall_lit_shortwave;
        if (s.day && apart > 90 && apart < 270) longwave = lit_wall / kPi;
      }
    }
    for (size_t d = 0; d < 4; ++d) {
      out.kface[d] += shortwave * faces[d];
      out.lface[d] += longwave * faces[d];
      if (state != SkyState::sky) hidden_face[d] += faces[d];
    }
    out.kside += shortwave * side;
    out.lside += longwave * side;
    out.ldown += longwave * down;
  }
  double falls = sky_down + lup;
  if (c.closed_longwave) {
    const auto [from_above, from_below] =
        exchange(out.ldown, (1 - ew) * 0.5 * hidden_down / kPi, lup, ground_reflects(x, pixel));
    falls = from_above + from_below;
  }
  const double reflected = falls * (1 - ew) * 0.5 / kPi;
  out.ldown += reflected * hidden_down;
  out.lside += reflected * hidden_side;
  for (size_t d = 0; d < 4; ++d) out.lface[d] += reflected * hidden_face[d];
  return out;
}

/// Shortwave that the surroundings of a pixel give: shares of sky and of walls, and what the ground reflects.
struct Surroundings {
  double open = 0;   ///< share of the sky past plants
  double share = 0;  ///< of the walls in shadow
  double mix = 0, walls = 0;
  std::array<double, 5> kup{};
};
inline Surroundings surroundings(const StepContext& x, size_t p) {
  const StepScalars& s = x.s;
  const double svf = x.g.view[0][p], veg = x.g.view[5][p], diffuse = s.diffuse;
  const double sine = std::sin(x.f.sun_altitude_deg * kRadian);
  Surroundings out;
  out.open = std::clamp(svf - (1 - veg) * (1 - x.view_psi), 0.0, 1.0);
  const double alpha = std::asin(std::sqrt(1 - std::max(0.0, svf + veg - 1)));
  out.share = s.wall_shadow_one ? 1.0 : 0.5;
  if (s.day && !s.wall_shadow_one)
    out.share = wall_shadow_share(kPi / 2 - x.f.sun_altitude_deg * kRadian, alpha);
  out.mix = s.global * (1 - out.share) + diffuse * out.share;
  out.walls = s.wall_albedo * (1 - out.open) * out.mix;
  for (size_t v = 0; v < 5; ++v)
    out.kup[v] = s.day ? x.ground.albedo[v][p] * s.beam * sine +
                             (diffuse * out.open + out.walls) * x.ground.albedo_no_shadow[v][p]
                       : 0;
  return out;
}

/// The four sides of a body, and of vertical planes in `out`.
inline void face_sides(const StepContext& x, const Surroundings& around, const PatchFluxes& patches, size_t p,
                       BodyFluxes& b, StepPlanes& out) {
  const StepScalars& s = x.s;
  const Constants& c = x.o.constants;
  for (size_t d = 0; d < 4; ++d) {
    const double direct = x.shadow[p] * s.beam * s.face_beam[d];
    const SideSky side{x.g.view[d + 1][p], x.g.view[d + 6][p], x.g.view[d + 11][p]};
    const double normal = (90.0 + 90.0 * static_cast<double>(d)) * kRadian,
                 facing = std::cos(x.f.sun_azimuth_deg * kRadian - normal);
    const double on_plane =
        x.shadow[p] * s.beam * std::cos(x.f.sun_altitude_deg * kRadian) * std::max(0.0, facing);
    const double below = x.ground.lup[d + 1][p] + ground_reflects(x, p) * b.ldown;
    const auto set_side = [&](double shortwave, double longwave) {
      out[kRadiationOutputs + d][p] = (s.day ? on_plane : 0) + shortwave;
      out[kRadiationOutputs + 4 + d][p] = longwave;
    };
    if (x.anisotropic()) {
      b.kside[d] = direct + 0.5 * around.kup[d + 1];
      b.lside[d] = 0.5 * below;
      set_side(patches.kface[d] + 0.5 * around.kup[d + 1], patches.lface[d] + b.lside[d]);
      continue;
    }
    b.kside[d] = shortwave_side(side, s.diffuse, s.wall_albedo, around.mix, x.psi, around.kup[d + 1], direct);
    b.lside[d] =
        longwave_side(side, {c.sigma, x.air_k(), s.side_emissivity, x.o.wall.emissivity, s.wall_excess_k,
                             s.wall_sun[d], around.share, b.ldown, below, c.closed_longwave});
    set_side(b.kside[d] - direct, b.lside[d]);
  }
}

/// Fluxes on the body at a pixel; the planes of the sides go to `out`.
inline BodyFluxes body_fluxes(const StepContext& x, size_t p, StepPlanes& out) {
  const StepScalars& s = x.s;
  const double svf = x.g.view[0][p], veg = x.g.view[5][p], aveg = x.g.view[10][p];
  const double sine = std::sin(x.f.sun_altitude_deg * kRadian), beam = s.beam, diffuse = s.diffuse;
  const Surroundings around = surroundings(x, p);
  const double lup = x.ground.lup[0][p], air = x.air_k(), ew = x.o.wall.emissivity;
  const PatchFluxes patches = x.anisotropic() ? patch_fluxes(x, p, lup) : PatchFluxes{};
  BodyFluxes b{};
  b.kdown = beam * x.shadow[p] * sine * s.day +
            (x.anisotropic() ? diffuse * patches.luminance : diffuse * around.open) + around.walls;
  b.kup = around.kup[0];
  b.ldown = patches.ldown;
  if (!x.anisotropic()) {
    const double sigma = x.o.constants.sigma, covered = 2 - svf - veg;
    b.ldown = longwave_down(svf, veg, aveg, s.sky_emissivity, air, s.wall_excess_k, ew, sigma);
    if (x.o.constants.closed_longwave) {
      const double from_sky = covered * (1 - ew) * s.sky_emissivity * sigma * power4(air);
      b.ldown = exchange(b.ldown - from_sky, covered * (1 - ew) / 2, lup, ground_reflects(x, p)).first;
    }
  }
  b.lup = lup + ground_reflects(x, p) * b.ldown;
  b.kside_curved = (x.box() ? 0 : x.shadow[p] * beam * s.cos_altitude) + patches.kside;
  b.lside_curved = patches.lside;
  face_sides(x, around, patches, p, b, out);
  return b;
}

inline StepPlanes step_planes(const StepContext& x) {
  const Constants& c = x.o.constants;
  StepPlanes out;
  for (Reals& plane : out) plane.resize(x.g.pixels());
  for (size_t p = 0; p < x.g.pixels(); ++p) {
    const BodyFluxes b = body_fluxes(x, p, out);
    const auto mean_side = [&](double curved, const std::array<double, 4>& faces) {
      return (curved * x.body.curved + (faces[0] + faces[1] + faces[2] + faces[3]) * x.body.side) /
             (4 * x.body.side);
    };
    const double tmrt =
        mean_radiant_temperature(b, x.body, c.absorption_short, c.absorption_long, c.sigma, c.kelvin_tmrt);
    const double values[kRadiationOutputs] = {std::clamp(tmrt, c.tmrt_lowest_c, c.tmrt_highest_c),
                                              b.kdown,
                                              b.kup,
                                              mean_side(b.kside_curved, b.kside),
                                              b.ldown,
                                              b.lup,
                                              mean_side(b.lside_curved, b.lside),
                                              x.shadow[p],
                                              x.ground.norm[p]};
    for (size_t k = 0; k < kRadiationOutputs; ++k) out[k][p] = values[k];
  }
  return out;
}

inline StepPlanes step(const StepGrids& g, const StepForcing& f, const RadiationOptions& o,
                       StepState& state) {
  return step_planes(StepContext(g, f, o, state));
}

}  // namespace lockstep::urban::reference
