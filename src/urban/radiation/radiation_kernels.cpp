// The kernel of all fluxes of a step and of the mean radiant temperature.
#include <array>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "urban/radiation/kernels.hpp"

namespace lockstep::urban::kernels {
namespace {

using Plane = Grid<f32, 2>;
using Planes = Grid<f32, 3>;
using Int = Param<i32>;
using Table = Grid<f32, 1>;
using Real = Val<f32>;

constexpr int kSideViews = 4;

/// Weight of a view factor on a vertical side, over its total.
Real side_share(const Real& x) {
  constexpr double total = 4.4897;
  const auto c = [](double v) { return float(v / total); };
  return x *
         (((((x * c(63.227) - c(161.51)) * x + c(156.91)) * x - c(70.424)) * x + c(16.773)) * x - c(0.4863));
}

/// Share of walls in shadow as a function of tan α · tan β / 2 alone. UMEP's cylindrical wedge, rewritten so
/// that nothing cancels where the sky is open: there it tends to ½.
Real wall_shadow_share(const Real& g) {
  const float pi = float(std::numbers::pi);
  const Real r = 1.0f / sqrt(g * g * 0.75f + 1.0f);
  const Real c = g * r, s = sqrt(max(1.0f - c * c, 0.0f));
  const Real k = (acos(min(c, 1.0f)) - 1.0f + c / (s + 1.0f)) / (1.0f - c);
  const Real wide = 1.0f - (1.0f - c * k + r * k) / pi;
  return select(g < 1.0f, wide, 1.0f - 1.0f / (g * pi));
}

/// svf + veg − 1 without rounding the sum first: where little is open, its root counts.
Real open_share(const Real& svf, const Real& veg) {
  const Real sum = svf + veg, part = sum - svf;
  return (sum - 1.0f) + ((svf - (sum - part)) + (veg - part));
}

/// View factors of a pixel, all directions and the four sides.
struct Views {
  std::vector<Real> svf, veg, aveg;
  Views(const Planes& planes, const At<2>& at, bool plants) {
    for (int v = 0; v < 5; ++v) {
      svf.push_back(planes(v, at));
      veg.push_back(plants ? planes(5 + v, at) : Real(1.0f));
      aveg.push_back(plants ? planes(10 + v, at) : Real(1.0f));
    }
  }
};

/// What the patches of the sky send.
struct PatchSums {
  Var<f32> luminance{0.0f}, short_side{0.0f}, long_side{0.0f}, long_down{0.0f}, sky_down{0.0f},
      covered_side{0.0f}, covered_down{0.0f};
};

void add_patches(const At<2>& at, const Grid<u32, 3>& states, const Table& table, const Int& words,
                 const Real& svf, PatchSums& sums) {
  const Real tan_view = sqrt((1.0f - svf) / svf);
  const Real wall_long = table[int(kWallRadiance)], lit_short = table[int(kWallLitShortwave)],
             shaded_short = table[int(kWallShadedShortwave)], canopy = table[int(kCanopy)];
  for_(0, words, [&](const Val<i32>& w) {
    const Val<u32> low = states(w, at), high = low >> 1u;
    const Val<u32> sky = ~(low | high), plant = low & ~high, wall = high & ~low;
    for (int k = 0; k < 16; ++k) {
      const u32 bit = 1u << (2 * k);
      const auto is = [&](const Val<u32>& kind) { return (kind & bit) != 0u; };
      const Val<i32> row = (w * 16 + k) * kPatchWords + kFirstPatch;
      const auto a = table.wide<4>(row), b = table.wide<4>(row + 4);
      const Val<bool> open = is(sky), lit = is(wall) & (tan_view < b[kThreshold - 4]);
      const Real side = b[kSide - 4], down = b[kDown - 4];
      const Real shortwave = select(open, a[kSkyShort], select(lit, lit_short, shaded_short));
      const Real longwave = select(open, a[kSkyLong], select(lit, a[kLitLong], wall_long));
      sums.luminance += select(open, a[kLuminance], select(is(plant), a[kLuminance] * canopy, Real(0.0f)));
      sums.short_side += shortwave * side;
      sums.long_side += longwave * side;
      sums.long_down += longwave * down;
      sums.sky_down += select(open, longwave, Real(0.0f)) * down;
      sums.covered_side += select(open, Real(0.0f), side);
      sums.covered_down += select(open, Real(0.0f), down);
    }
  });
}

/// Longwave on one side under an isotropic sky.
Real longwave_side(const Views& v, int side, const Table& table, const Real& shadow_share, const Real& ldown,
                   const Real& lup) {
  const size_t d = size_t(side + 1);
  const Real svf = v.svf[d], open = open_share(svf, v.veg[d]);
  const Real wall = side_share(v.aveg[d]) - side_share(svf);
  const Real view_sky = side_share(open), reflected = 1.0f - view_sky, plants = reflected - wall;
  const Real wall_long = table[int(kWallLongwave)], sun = table[kWallSun + side];
  Var<f32> walls(wall_long * wall * 0.5f);
  if_(sun >= 0.0f, [&] {
    const Real alpha = asin(sqrt(clamp(1.0f - svf, 0.0f, 1.0f))), share = 2.0f * shadow_share - 1.0f;
    const Real a = atan(alpha), b = alpha * share, beta = (a - b) * 0.5f + b;
    const Real warm = table[int(kAir)] + table[int(kWallExcess)] * sun, square = warm * warm;
    const Real lit = table[int(kWallSigma)] * (square * square) * wall * (1.0f - share) * cos(beta) * 0.5f;
    walls = lit + wall_long * wall * share * 0.5f;
  });
  return Real(walls) + open * table[int(kSideSkyLongwave)] * view_sky * 0.5f + wall_long * plants * 0.5f +
         lup * 0.5f + (ldown + lup) * reflected * table[int(kWallReflects)] * 0.5f;
}

/// The warmth of the ground of this step and before: all directions and the four sides.
std::array<std::optional<Real>, 5> delayed(const At<2>& at, const Planes& ground, const Table& table,
                                           const InOut<f32, 3>& state) {
  const Real weight = table[int(kDelayWeight)];
  const Val<bool> first = table[int(kDelayFirst)] != 0.0f, keep = table[int(kDelayKeep)] != 0.0f;
  std::array<std::optional<Real>, 5> lup;
  for (int v = 0; v < 5; ++v) {
    const Real now = ground(kLupPlane + v, at);
    const Real before = select(first, now, state(v, at));
    const Real out = now * (1.0f - weight) + before * weight;
    state(v, at) = select(keep, out, before);
    lup[size_t(v)] = out;
  }
  return lup;
}

void radiation_body(const At<2>& at, const Plane& sun, const Planes& ground, const Planes& albedo,
                    const Planes& view, const Grid<u32, 3>* states, bool plants, const Table& table,
                    const InOut<f32, 3>& state, const Out<f32, 3>& out, const Val<i32>& row,
                    const Val<i32>& col, const Int* words) {
  const auto slot = [&](int k) { return table[k]; };
  const Views v(view, at, plants);
  const Real shadow = abs(sun(row, col)), svf = v.svf[0], veg = v.veg[0], aveg = v.aveg[0];
  const auto lup = delayed(at, ground, table, state);

  // Shortwave.
  const Real open = max(open_share(svf, veg), 0.0f);
  const Real share = select(slot(kWallShadowOne) != 0.0f, Real(1.0f),
                            wall_shadow_share(sqrt((1.0f - open) / open) * slot(kHalfTanZenith)));
  const Real view_sky = clamp(svf - (1.0f - veg) * slot(kViewOpacity), 0.0f, 1.0f);
  const Real mix = slot(kGlobal) * (1.0f - share) + slot(kDiffuse) * share;
  const Real from_walls = slot(kWallAlbedo) * (1.0f - view_sky) * mix;
  const Real even = slot(kDiffuse) * view_sky, beam_down = slot(kBeamDown);
  PatchSums patches;
  if (states) add_patches(at, *states, table, *words, svf, patches);
  const Real kdown =
      beam_down * shadow + (states ? slot(kDiffuse) * Real(patches.luminance) : even) + from_walls;
  std::array<std::optional<Real>, 5> kup;
  for (int d = 0; d < 5; ++d)
    kup[size_t(d)] = ground(kAlbedoPlane + d, at) * beam_down + (even + from_walls) * albedo(d, at);
  Real faces = shadow * slot(kFaceBeam), curved = shadow * slot(kCurvedBeam);
  for (size_t d = 1; d <= kSideViews; ++d) {
    Real face = *kup[d];
    if (!states) {
      const Real walls = 1.0f - side_share(v.svf[d]);
      const Real leaves = (1.0f - side_share(open_share(v.svf[d], v.veg[d]))) - walls;
      const Real covered = walls + leaves * (1.0f - slot(kCanopy));
      face = face + slot(kDiffuse) * (1.0f - covered) + slot(kWallAlbedo) * covered * mix;
    }
    faces = faces + face * 0.5f;
  }
  if (states) curved = curved + patches.short_side;

  // Longwave.
  Real ldown = Real(0.0f), long_faces = Real(0.0f), long_curved = Real(0.0f);
  const Real up = *lup[0];
  if (states) {
    const Real reflected = (Real(patches.sky_down) + up) * slot(kReflectedRadiance);
    ldown = Real(patches.long_down) + reflected * Real(patches.covered_down);
    long_curved = Real(patches.long_side) + reflected * Real(patches.covered_side);
    for (size_t d = 1; d <= kSideViews; ++d) long_faces = long_faces + *lup[d] * 0.5f;
  } else {
    const Real wall_long = slot(kWallLongwave);
    ldown = open_share(svf, veg) * slot(kSkyLongwave) + (2.0f - veg - aveg) * wall_long +
            (aveg - svf) * slot(kWallLitLongwave) +
            (2.0f - svf - veg) * slot(kWallReflects) * slot(kSkyLongwave);
    for (int side = 0; side < kSideViews; ++side)
      long_faces = long_faces + longwave_side(v, side, table, share, ldown, *lup[size_t(side + 1)]);
  }

  // The body.
  const Real up_share = slot(kUpShare), side_share_of_body = slot(kSideShare),
             curved_share = slot(kCurvedShare);
  const Real around_short = curved * curved_share + faces * side_share_of_body;
  const Real around_long = long_curved * curved_share + long_faces * side_share_of_body;
  const Real absorbed = slot(kAbsorbShort) * (around_short + (kdown + *kup[0]) * up_share) +
                        slot(kAbsorbLong) * (around_long + (ldown + up) * up_share);
  const Real kelvin = sqrt(sqrt(max(absorbed, 0.0f) / slot(kBodySigma)));
  const Real all_sides = side_share_of_body * float(kSideViews);
  const Real results[] = {clamp(kelvin - slot(kKelvin), slot(kLowest), slot(kHighest)),
                          kdown,
                          *kup[0],
                          around_short / all_sides,
                          ldown,
                          up,
                          around_long / all_sides,
                          shadow};
  for (int k = 0; k < 8; ++k) out(k, at) = results[k];
}

Kernel make_isotropic(bool plants) {
  return kernel(plants ? "urban.radiation.isotropic.plants" : "urban.radiation.isotropic",
                [plants](At<2> at, Plane sun, Planes ground, Planes albedo, Planes view, Table table,
                         InOut<f32, 3> state, Out<f32, 3> out, Int row, Int col) {
                  radiation_body(at, sun, ground, albedo, view, nullptr, plants, table, state, out,
                                 at.y + row, at.x + col, nullptr);
                });
}

Kernel make_anisotropic(bool plants) {
  return kernel(plants ? "urban.radiation.anisotropic.plants" : "urban.radiation.anisotropic",
                [plants](At<2> at, Plane sun, Planes ground, Planes albedo, Planes view, Grid<u32, 3> states,
                         Table table, InOut<f32, 3> state, Out<f32, 3> out, Int row, Int col, Int words) {
                  radiation_body(at, sun, ground, albedo, view, &states, plants, table, state, out,
                                 at.y + row, at.x + col, &words);
                });
}

}  // namespace

const Kernel& radiation(bool anisotropic, bool plants) {
  static const Kernel all[2][2] = {{make_isotropic(false), make_isotropic(true)},
                                   {make_anisotropic(false), make_anisotropic(true)}};
  return all[anisotropic][plants];
}

}  // namespace lockstep::urban::kernels
