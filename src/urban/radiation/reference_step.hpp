// A whole step in plain C++ and double precision, from shadows and sky states to the mean radiant temperature.
#pragma once

#include <memory>

#include "urban/city/prepare.hpp"
#include "urban/radiation/reference.hpp"
#include "urban/radiation/step_table.hpp"
#include "urban/reference.hpp"

namespace lockstep::urban::reference {

/// What a step works on, whole grids. View factors in the order of kSkyViewNames, 1 of plants where there are
/// none.
struct StepGrids {
  int64_t rows = 0, cols = 0;
  double pixel_size_m = 1;
  Reals buildings, wall_height, wall_aspect_deg;
  std::vector<int32_t> cover;  ///< rows of the land cover; empty: bare
  std::array<Reals, kSkyViewGrids> view;
  PackedSky states;
  SkyDivision sky;
  // Of the sun's position:
  Reals sun, vegetation, wall_sun;  ///< published bits of the shadow, sunlit height of walls

  size_t pixels() const { return static_cast<size_t>(rows * cols); }
};

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
  for (int32_t code : codes)
    for (size_t k = 0; k < options.land_cover.size(); ++k)
      if (options.land_cover[k].code == code) g.cover.push_back(static_cast<int32_t>(k));
  g.wall_height.assign(walls.height.values.begin(), walls.height.values.end());
  g.wall_aspect_deg.assign(walls.aspect.values.begin(), walls.aspect.values.end());
  SkyOptions view = options.view;
  view.rays.max_reach_m = longest_ray_m(city, options);
  g.sky = sky_division(view.patches, view.edges);
  g.states = sky_states<Real>(city, g.sky, view);
  const auto grids = sky_view<Real>(city, g.sky, g.states);
  for (size_t k = 0; k < grids.size(); ++k) g.view[k].assign(grids[k].begin(), grids[k].end());
  g.sun.assign(g.pixels(), 0.0);
  g.vegetation = g.wall_sun = g.sun;
  if (!f.day()) return g;
  const RayBounds bounds{city.rows, city.cols, city.pixel_size_m, city.relief_m(), view.rays.max_reach_m};
  const auto rays = cast<Real>(city, ray_steps({f.sun_azimuth_deg, f.sun_altitude_deg}, bounds), true);
  const std::vector<Real> heights(walls.height.values.begin(), walls.height.values.end()),
      aspects(walls.aspect.values.begin(), walls.aspect.values.end());
  const auto lit = shade_walls<Real>(city, rays, heights, aspects, f.sun_azimuth_deg);
  g.wall_sun.assign(lit.sun.begin(), lit.sun.end());
  for (size_t p = 0; p < g.pixels(); ++p) {
    g.sun[p] = sees_past_buildings(rays.state[p]);
    g.vegetation[p] = sees_past_vegetation(rays.state[p]);
  }
  return g;
}

/// What is carried to the next step.
struct StepState {
  WaveDelay clock;
  Views lup;
};

/// The planes of RadiationOutput, then what vertical planes receive that face east, south, west and north: shortwave,
/// longwave.
inline constexpr size_t kSidePlanes = 8;
using StepPlanes = std::array<Reals, kRadiationOutputs + kSidePlanes>;

/// Longwave and shortwave of the patches on a pixel.
struct PatchFluxes {
  double luminance = 0, kside = 0, lside = 0, ldown = 0;
  std::array<double, 4> kface{}, lface{};  // vertical planes
};

inline PatchFluxes patch_fluxes(const StepGrids& g, size_t pixel, const StepForcing& f,
                                const RadiationOptions& o, const std::vector<double>& luminance, double lup) {
  const Constants& c = o.constants;
  const StepScalars s = step_scalars(f, o);
  const std::vector<double> solid = band_solid_angles(g.sky);
  const double air = c.sigma * power4(f.air_c + c.kelvin), ew = o.wall.emissivity;
  const double lit_wall = c.sigma * ew * power4(f.air_c + c.kelvin + s.wall_excess_k);
  const double asvf = std::acos(std::sqrt(g.view[0][pixel]));
  const double sun = f.sun_altitude_deg * kRadian;
  double total = 0;
  for (size_t k = 0; k < luminance.size(); ++k)
    total += luminance[k] * solid[static_cast<size_t>(g.sky.band_of_patch[k])] *
             std::sin(g.sky.patches[k].altitude_deg * kRadian);
  PatchFluxes out;
  double sky_down = 0, hidden_side = 0, hidden_down = 0;
  std::array<double, 4> hidden_face{};
  const size_t pixels = g.pixels();
  for (size_t k = 0; k < g.sky.patches.size(); ++k) {
    const auto state = static_cast<SkyState>(g.states.words[k / 16 * pixels + pixel] >> (2 * (k % 16)) & 3u);
    const double p = g.sky.patches[k].altitude_deg * kRadian, azimuth = g.sky.patches[k].azimuth_deg;
    const double angle = solid[static_cast<size_t>(g.sky.band_of_patch[k])], down = angle * std::sin(p);
    double side = angle * std::cos(p);
    if (o.body == Body::box) {
      double faces = 0;
      for (double face : {90., 180., 270., 0.}) faces += std::max(0.0, std::cos((azimuth - face) * kRadian));
      side *= faces;
    }
    const double apart = std::abs(azimuth - f.sun_azimuth_deg);
    double shortwave = s.wall_albedo * s.diffuse * 0.5 / kPi;
    double longwave = ew * air / kPi;
    if (state == SkyState::sky) {
      const double emissivity =
          1 - (1 - s.sky_emissivity) * std::exp(0.308 * (1.7 - 1 / std::cos(kPi / 2 - p)));
      longwave = emissivity * air / kPi;
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
      const double normal = 90.0 + 90.0 * static_cast<double>(d);
      const double face = angle * std::cos(p) * std::max(0.0, std::cos((azimuth - normal) * kRadian));
      out.kface[d] += shortwave * face;
      out.lface[d] += longwave * face;
      if (state != SkyState::sky) hidden_face[d] += face;
    }
    out.kside += shortwave * side;
    out.lside += longwave * side;
    out.ldown += longwave * down;
  }
  const double reflected = (sky_down + lup) * (1 - ew) * 0.5 / kPi;
  out.ldown += reflected * hidden_down;
  out.lside += reflected * hidden_side;
  for (size_t d = 0; d < 4; ++d) out.lface[d] += reflected * hidden_face[d];
  return out;
}

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
    if (g.buildings[p] == 0) in.wall_height[p] = in.wall_sun[p] = 0;
  const bool covers = !g.cover.empty();
  const std::vector<double> excess = ground_excess(f, o, covers);
  for (size_t p = 0; p < pixels; ++p) {
    const SurfaceRow& row = covers ? o.land_cover[static_cast<size_t>(g.cover[p])] : o.bare;
    in.excess.push_back(excess[covers ? static_cast<size_t>(g.cover[p]) : 0]);
    in.emissivity.push_back(row.emissivity);
    in.albedo.push_back(row.albedo);
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
    const DelayStep step = advance(state.clock, f.step_days);
    for (size_t v = 0; v < kViews; ++v) {
      state.lup[v].resize(pixels);
      delay(step, view.lup[v], state.lup[v]);
    }
    return view;
  }
  state.clock = {};
  for (size_t v = 0; v < kViews; ++v)
    for (size_t p = 0; p < pixels; ++p) {
      view.lup[v][p] = c.sigma * in.emissivity[p] * power4(in.air_k);
      view.albedo[v][p] = 0;
    }
  view.norm.assign(pixels, 0.0);
  return view;
}

inline StepPlanes step(const StepGrids& g, const StepForcing& f, const RadiationOptions& o,
                       StepState& state) {
  const Constants& c = o.constants;
  const StepScalars s = step_scalars(f, o);
  const bool anisotropic = o.sky == SkyModel::anisotropic, box = o.body == Body::box;
  const double psi = f.canopy_transmissivity, sine = std::sin(f.sun_altitude_deg * kRadian);
  const double view_psi = c.seasonal_canopy ? psi : c.leaf_on;
  const double beam = s.beam, diffuse = s.diffuse, air_k = f.air_c + c.kelvin;
  StepPlanes out;
  for (Reals& plane : out) plane.resize(g.pixels());
  Reals shadow(g.pixels(), 0.0);
  for (size_t p = 0; p < g.pixels() && s.day; ++p) shadow[p] = g.sun[p] - (1 - g.vegetation[p]) * (1 - psi);
  const GroundView ground = ground_of_step(g, f, o, shadow, state);
  std::vector<double> luminance(g.sky.patches.size(), 0.0);
  if (s.day && anisotropic)
    luminance = perez_luminance(
        g.sky.patches, {f.sun_altitude_deg, f.sun_azimuth_deg, f.diffuse_w_m2, f.beam_w_m2, f.day_of_year},
        c.perez, c.perez_guards);
  BodyFactors body = body_factors(o.posture);
  if (box) body.curved = body.side;  // takes the sum over its faces
  for (size_t p = 0; p < g.pixels(); ++p) {
    const double svf = g.view[0][p], veg = g.view[5][p], aveg = g.view[10][p];
    const double open = std::clamp(svf - (1 - veg) * (1 - view_psi), 0.0, 1.0);
    const double alpha = std::asin(std::sqrt(1 - std::max(0.0, svf + veg - 1)));
    double share = s.wall_shadow_one ? 1.0 : 0.5;
    if (s.day && !s.wall_shadow_one) share = wall_shadow_share(kPi / 2 - f.sun_altitude_deg * kRadian, alpha);
    const double mix = s.global * (1 - share) + diffuse * share;
    const double walls = s.wall_albedo * (1 - open) * mix;
    const double lup = ground.lup[0][p];
    const PatchFluxes patches = anisotropic ? patch_fluxes(g, p, f, o, luminance, lup) : PatchFluxes{};
    BodyFluxes b{};
    b.kdown = beam * shadow[p] * sine * s.day + (anisotropic ? diffuse * patches.luminance : diffuse * open) +
              walls;
    std::array<double, 5> kup;
    for (size_t v = 0; v < 5; ++v)
      kup[v] =
          s.day ? ground.albedo[v][p] * beam * sine + (diffuse * open + walls) * ground.albedo_no_shadow[v][p]
                : 0;
    b.kup = kup[0];
    b.lup = lup;
    b.ldown = anisotropic ? patches.ldown
                          : longwave_down(svf, veg, aveg, s.sky_emissivity, air_k, s.wall_excess_k,
                                          o.wall.emissivity, c.sigma);
    b.kside_curved = (box ? 0 : shadow[p] * beam * s.cos_altitude) + patches.kside;
    b.lside_curved = patches.lside;
    for (size_t d = 0; d < 4; ++d) {
      const double direct = shadow[p] * beam * s.face_beam[d];
      const SideSky side{g.view[d + 1][p], g.view[d + 6][p], g.view[d + 11][p]};
      const double normal = (90.0 + 90.0 * static_cast<double>(d)) * kRadian,
                   facing = std::cos(f.sun_azimuth_deg * kRadian - normal);
      const double on_plane =
          shadow[p] * beam * std::cos(f.sun_altitude_deg * kRadian) * std::max(0.0, facing);
      const auto set_side = [&](double shortwave, double longwave) {
        out[kRadiationOutputs + d][p] = (s.day ? on_plane : 0) + shortwave;
        out[kRadiationOutputs + 4 + d][p] = longwave;
      };
      if (anisotropic) {
        b.kside[d] = direct + 0.5 * kup[d + 1];
        b.lside[d] = 0.5 * ground.lup[d + 1][p];
        set_side(patches.kface[d] + 0.5 * kup[d + 1], patches.lface[d] + b.lside[d]);
        continue;
      }
      b.kside[d] = shortwave_side(side, diffuse, s.wall_albedo, mix, psi, kup[d + 1], direct);
      b.lside[d] = longwave_side(side, {c.sigma, air_k, s.side_emissivity, o.wall.emissivity, s.wall_excess_k,
                                        s.wall_sun[d], share, b.ldown, ground.lup[d + 1][p]});
      set_side(b.kside[d] - direct, b.lside[d]);
    }
    const auto mean_side = [&](double curved, const std::array<double, 4>& faces) {
      return (curved * body.curved + (faces[0] + faces[1] + faces[2] + faces[3]) * body.side) /
             (4 * body.side);
    };
    const double tmrt =
        mean_radiant_temperature(b, body, c.absorption_short, c.absorption_long, c.sigma, c.kelvin_tmrt);
    const double values[kRadiationOutputs] = {std::clamp(tmrt, c.tmrt_lowest_c, c.tmrt_highest_c),
                                              b.kdown,
                                              b.kup,
                                              mean_side(b.kside_curved, b.kside),
                                              b.ldown,
                                              b.lup,
                                              mean_side(b.lside_curved, b.lside),
                                              shadow[p],
                                              ground.norm[p]};
    for (size_t k = 0; k < kRadiationOutputs; ++k) out[k][p] = values[k];
  }
  return out;
}

}  // namespace lockstep::urban::reference
