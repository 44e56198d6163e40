// The kernel of all fluxes of a step and of the mean radiant temperature.
#include <array>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "urban/radiation/kernels.hpp"

namespace lockstep::urban::kernels {
namespace {

using Light = Grid<u32, 2>;
using Layers = Grid<f32, 3>;
using Int = Param<i32>;
using Table = Grid<f32, 1>;

constexpr int kSideViews = 4;

/// Weight of a view factor on a vertical side, over its total.
Val<f32> side_share(const Val<f32>& x) {
  constexpr double total = 4.4897;
  const auto c = [](double v) { return float(v / total); };
  return x *
         (((((x * c(63.227) - c(161.51)) * x + c(156.91)) * x - c(70.424)) * x + c(16.773)) * x - c(0.4863));
}

/// Share of walls in shadow as a function of tan α · tan β / 2 alone. UMEP's cylindrical wedge, rewritten so
/// that nothing cancels where the sky is open: there it tends to ½.
Val<f32> wall_shadow_share(const Val<f32>& g) {
  const float pi = float(std::numbers::pi);
  const Val<f32> r = 1.0f / sqrt(g * g * 0.75f + 1.0f);
  const Val<f32> c = g * r, s = sqrt(max(1.0f - c * c, 0.0f));
  const Val<f32> k = (acos(min(c, 1.0f)) - 1.0f + c / (s + 1.0f)) / (1.0f - c);
  const Val<f32> wide = 1.0f - (1.0f - c * k + r * k) / pi;
  return select(g < 1.0f, wide, 1.0f - 1.0f / (g * pi));
}

/// svf + veg − 1 without rounding the sum first: where little is open, its root counts.
Val<f32> open_share(const Val<f32>& svf, const Val<f32>& veg) {
  const Val<f32> sum = svf + veg, part = sum - svf;
  return (sum - 1.0f) + ((svf - (sum - part)) + (veg - part));
}

/// View factors of a pixel, all directions and the four sides.
struct Views {
  std::vector<Val<f32>> svf, veg, aveg;
  Views(const Layers& planes, const At<2>& at, bool plants, const Table& table) {
    for (int v = 0; v < 5; ++v) {
      const auto factor = [&](int plane) {
        const Val<f32> x = planes(plane, at);
        return v == 0 ? x : min(x * table[kSideScale + v - 1], 1.0f);
      };
      svf.push_back(factor(v));
      veg.push_back(plants ? factor(5 + v) : Val<f32>(1.0f));
      aveg.push_back(plants ? factor(10 + v) : Val<f32>(1.0f));
    }
  }
};

/// Sums over the patches of the sky.
struct PatchSums {
  Var<f32> open{0.0f}, under{0.0f}, short_side{0.0f};             // luminance; light to the side
  Var<f32> side{0.0f}, down{0.0f};                                // of open patches
  Var<f32> long_side{0.0f}, long_down{0.0f};                      // of open patches
  Var<f32> lit_short{0.0f}, lit_long{0.0f}, lit_long_down{0.0f};  // what sunlit walls send above shaded ones
};

using States = Grid<u32, 3>;

/// Sun and sky by patches: which are open, under plants, or walls in the sun.
void add_light(const At<2>& at, const States& states, const Table& table, const Int& words,
               const Val<f32>& svf, PatchSums& sums) {
  const Val<f32> tan_view = sqrt((1.0f - svf) / svf);
  for_(0, words, [&](const Val<i32>& w) {
    const Val<u32> low = states(w, at), high = low >> 1u;
    const Val<u32> sky = ~(low | high) & 0x55555555u, plant = low & ~high & 0x55555555u,
                   wall = high & ~low & 0x55555555u;
    const Val<i32> first = w * (16 * kPatchWords) + kFirstPatch;
    const auto each = [&](const Val<u32>& kind, const auto& add) {
      for (int k = 0; k < 16; ++k) add((kind & (1u << (2 * k))) != 0u, first + k * kPatchWords);
    };
    const auto if_is = [](const Val<bool>& is, const Val<f32>& value) {
      return select(is, value, Val<f32>(0.0f));
    };
    const auto all = table.wide<4>(words * (16 * kPatchWords) + w * kWordWords + kFirstPatch);
    const auto some = [&] {
      if_(sky != 0u, [&] {
        each(sky, [&](const Val<bool>& is, const Val<i32>& row) {
          const auto patch = table.wide<2>(row);
          sums.open += if_is(is, patch[kLuminance]);
          sums.short_side += if_is(is, patch[kSkyShort]);
        });
      });
      if_(plant != 0u, [&] {
        each(plant, [&](const Val<bool>& is, const Val<i32>& row) {
          sums.under += if_is(is, table[row + int(kLuminance)]);
        });
      });
      if_((wall != 0u) & (tan_view < all[kHighestThreshold]), [&] {
        each(wall, [&](const Val<bool>& is, const Val<i32>& row) {
          const auto patch = table.wide<4>(row + int(kThreshold));
          const Val<bool> lit = is & (tan_view < patch[0]);
          sums.lit_short += if_is(lit, patch[kLitShort - kThreshold]);
          sums.lit_long += if_is(lit, patch[kLitLongSide - kThreshold]);
          sums.lit_long_down += if_is(lit, patch[kLitLongDown - kThreshold]);
        });
      });
    };
    if_(
        low == 0u,
        [&] {
          sums.open += all[kAllLuminance];
          sums.short_side += all[kAllShort];
        },
        some);
  });
}

/// The open sky's longwave by runs of patches.
void add_open_sky(const At<2>& at, const States& states, const Table& table, const Int& words,
                  const Int& runs, PatchSums& sums) {
  for_(0, runs, [&](const Val<i32>& k) {
    const Val<i32> row = words * (16 * kPatchWords + kWordWords) + kFirstPatch + k * kRunWords;
    const auto a = table.wide<4>(row), b = table.wide<4>(row + 4);
    const Val<u32> word = states(cast<i32>(a[kRunWord]), at);
    const Val<u32> patches = (Val<u32>(0x55555555u) >> (32u - cast<u32>(a[kRunPatches]) * 2u))
                             << (cast<u32>(a[kRunFirst]) * 2u);
    const Val<f32> open = cast<f32>(cast<i32>(popcount(~(word | (word >> 1u)) & patches)));
    sums.side += open * a[kRunSide];
    sums.down += open * b[kRunDown - 4];
    sums.long_side += open * b[kRunLongSide - 4];
    sums.long_down += open * b[kRunLongDown - 4];
  });
}

/// Longwave between a pixel's ground and what covers its sky.
struct Exchange {
  Val<bool> closed;
  Val<f32> emitted;   ///< by the ground
  Val<f32> reflects;  ///< 1 − emissivity of the ground

  Exchange(const At<2>& at, const Layers& albedo, const Table& table, const Val<f32>& lup)
      : closed(table[int(kClosed)] != 0.0f), emitted(lup), reflects(albedo(kReflectsPlane, at)) {}
  /// From above, where `given` comes from sky and walls, and walls reflect `share` of what falls on them.
  Val<f32> down(const Val<f32>& given, const Val<f32>& share) const {
    return (given + share * emitted) / (1.0f - share - share * reflects);
  }
  /// From below, with what the ground reflects.
  Val<f32> up(const Val<f32>& emits, const Val<f32>& ldown) const {
    return select(closed, emits + reflects * ldown, emits);
  }
};

/// Longwave on one side under an isotropic sky.
Val<f32> longwave_side(const Views& v, int side, const Table& table, const Val<f32>& shadow_share,
                       const Val<f32>& ldown, const Val<f32>& lup, const Val<bool>& closed) {
  const size_t d = size_t(side + 1);
  const Val<f32> svf = v.svf[d], open = open_share(svf, v.veg[d]);
  const Val<f32> wall = side_share(v.aveg[d]) - side_share(svf);
  const Val<f32> view_sky = side_share(open), reflected = 1.0f - view_sky, plants = reflected - wall;
  const Val<f32> wall_long = table[int(kWallLongwave)], sun = table[kWallSun + side];
  Var<f32> walls(wall_long * wall * 0.5f);
  if_(sun >= 0.0f, [&] {
    const Val<f32> alpha = asin(sqrt(clamp(1.0f - svf, 0.0f, 1.0f))), share = 2.0f * shadow_share - 1.0f;
    const Val<f32> a = atan(alpha), b = alpha * share, beta = (a - b) * 0.5f + b;
    const Val<f32> warm = table[int(kAir)] + table[int(kWallExcess)] * sun, square = warm * warm;
    const Val<f32> lit =
        table[int(kWallSigma)] * (square * square) * wall * (1.0f - share) * cos(beta) * 0.5f;
    const Val<f32> shaded = select(closed, 1.0f - (1.0f - share) * cos(beta), share);
    walls = lit + wall_long * wall * shaded * 0.5f;
  });
  const Val<f32> sky = select(closed, table[int(kSideSkyLongwave)], open * table[int(kSideSkyLongwave)]);
  const Val<f32> falls = select(closed, (ldown + lup) * 0.5f, ldown + lup);  // on walls
  return Val<f32>(walls) + sky * view_sky * 0.5f + wall_long * plants * 0.5f + lup * 0.5f +
         falls * reflected * table[int(kWallReflects)] * 0.5f;
}

using Five = std::array<std::optional<Val<f32>>, 5>;  // all directions and the four sides

/// The warmth of the ground of this step and before.
struct Delayed {
  Val<f32> weight;
  Val<bool> first;
  explicit Delayed(const Table& table)
      : weight(table[int(kDelayWeight)]), first(table[int(kDelayFirst)] != 0.0f) {}
  Val<f32> before(const Val<f32>& now, const Val<f32>& state) const { return select(first, now, state); }
  Val<f32> mix(const Val<f32>& now, const Val<f32>& before) const {
    return now * (1.0f - weight) + before * weight;
  }
};

Five delayed(const At<2>& at, const Layers& ground, const Table& table, const InOut<f32, 3>& state) {
  const Delayed delay(table);
  const Val<bool> keep = table[int(kDelayKeep)] != 0.0f;
  Five lup;
  for (int v = 0; v < 5; ++v) {
    const Val<f32> now = ground(kLupPlane + v, at), before = delay.before(now, state(v, at));
    const Val<f32> out = delay.mix(now, before);
    state(v, at) = select(keep, out, before);
    lup[size_t(v)] = out;
  }
  return lup;
}

Five delayed(const At<2>& at, const Layers& ground, const Table& table, const Layers& state) {
  const Delayed delay(table);
  Five lup;
  for (int v = 0; v < 5; ++v) {
    const Val<f32> now = ground(kLupPlane + v, at);
    lup[size_t(v)] = delay.mix(now, delay.before(now, state(v, at)));
  }
  return lup;
}

/// Sunlight at a pixel and what walls and the ground reflect of it.
struct Sunlight {
  Val<f32> shadow, share, view_sky, mix, from_walls, even;
  Five kup;

  Sunlight(const At<2>& at, const Light& light, const Layers& ground, const Layers& albedo, const Views& v,
           const Table& table)
      : shadow(shadow_of(light[at], table)),
        share(share_of(v, table)),
        view_sky(clamp(v.svf[0] - (1.0f - v.veg[0]) * table[int(kViewOpacity)], 0.0f, 1.0f)),
        mix(table[int(kGlobal)] * (1.0f - share) + table[int(kDiffuse)] * share),
        from_walls(table[int(kWallAlbedo)] * (1.0f - view_sky) * mix),
        even(table[int(kDiffuse)] * view_sky) {
    for (int d = 0; d < 5; ++d)
      kup[size_t(d)] =
          ground(kAlbedoPlane + d, at) * table[int(kBeamDown)] + (even + from_walls) * albedo(d, at);
  }
  /// Twice the shortwave of a side under an isotropic sky, without the beam.
  Val<f32> twice_side(const Views& v, size_t d, const Table& table) const {
    const Val<f32> walls = 1.0f - side_share(v.svf[d]);
    const Val<f32> leaves = (1.0f - side_share(open_share(v.svf[d], v.veg[d]))) - walls;
    const Val<f32> covered = walls + leaves * (1.0f - table[int(kCanopy)]);
    return *kup[d] + table[int(kDiffuse)] * (1.0f - covered) + table[int(kWallAlbedo)] * covered * mix;
  }

 private:
  static Val<f32> shadow_of(const Val<u32>& lit, const Table& table) {
    return select((lit & kInSun) != 0u, Val<f32>(1.0f),
                  select((lit & kUnderPlant) != 0u, table[int(kCanopy)], Val<f32>(0.0f)));
  }
  static Val<f32> share_of(const Views& v, const Table& table) {
    const Val<f32> open = max(open_share(v.svf[0], v.veg[0]), 0.0f);
    return select(table[int(kWallShadowOne)] != 0.0f, Val<f32>(1.0f),
                  wall_shadow_share(sqrt((1.0f - open) / open) * table[int(kHalfTanZenith)]));
  }
};

/// Longwave from above under an isotropic sky.
Val<f32> longwave_down(const Views& v, const Table& table, const Exchange& exchange) {
  const Val<f32> svf = v.svf[0], veg = v.veg[0], aveg = v.aveg[0], sky = table[int(kSkyLongwave)];
  const Val<f32> given = open_share(svf, veg) * sky + (2.0f - veg - aveg) * table[int(kWallLongwave)] +
                         (aveg - svf) * table[int(kWallLitLongwave)];
  const Val<f32> reflected = (2.0f - svf - veg) * table[int(kWallReflects)];
  return select(exchange.closed, exchange.down(given, reflected * 0.5f), given + reflected * sky);
}

/// The packed sky of a pixel.
struct SkyStates {
  const States& states;
  const Int &words, &runs;
};

void radiation_body(const At<2>& at, const Light& light, const Layers& ground, const Layers& albedo,
                    const Layers& view, const SkyStates* states, bool plants, const Table& table,
                    const InOut<f32, 3>& state, const Out<f32, 3>& out) {
  const auto slot = [&](int k) { return table[k]; };
  const Views v(view, at, plants, table);
  const Val<f32> svf = v.svf[0];
  const auto lup = delayed(at, ground, table, state);
  const Sunlight sun(at, light, ground, albedo, v, table);

  // Shortwave.
  PatchSums patches;
  if (states) {
    add_open_sky(at, states->states, table, states->words, states->runs, patches);
    if_(slot(kSunUp) != 0.0f, [&] { add_light(at, states->states, table, states->words, svf, patches); });
  }
  const Val<f32> kdown =
      slot(kBeamDown) * sun.shadow +
      (states ? slot(kDiffuse) * (patches.under * slot(kCanopy) + patches.open) : sun.even) + sun.from_walls;
  Val<f32> faces = sun.shadow * slot(kFaceBeam), curved = sun.shadow * slot(kCurvedBeam);
  for (size_t d = 1; d <= kSideViews; ++d)
    faces = faces + (states ? *sun.kup[d] : sun.twice_side(v, d, table)) * 0.5f;
  const Val<f32> covered_side = slot(kSideTotal) - patches.side,
                 covered_down = slot(kDownTotal) - patches.down;
  if (states)
    curved = curved + (slot(kWallShadedShortwave) * covered_side + patches.short_side + patches.lit_short);

  // Longwave.
  Val<f32> ldown = Val<f32>(0.0f), long_faces = Val<f32>(0.0f), long_curved = Val<f32>(0.0f);
  const Exchange exchange(at, albedo, table, *lup[0]);
  if (states) {
    const Val<f32> closed_down =
        exchange.down(patches.long_down + slot(kWallRadiance) * covered_down + patches.lit_long_down,
                      slot(kReflectedRadiance) * covered_down);
    const Val<f32> falls =
        select(exchange.closed, closed_down + exchange.up(*lup[0], closed_down), patches.long_down + *lup[0]);
    const Val<f32> covered = falls * slot(kReflectedRadiance) + slot(kWallRadiance);
    ldown = patches.long_down + covered * covered_down + patches.lit_long_down;
    long_curved = patches.long_side + covered * covered_side + patches.lit_long;
    for (size_t d = 1; d <= kSideViews; ++d) long_faces = long_faces + exchange.up(*lup[d], ldown) * 0.5f;
  } else {
    ldown = longwave_down(v, table, exchange);
    for (int side = 0; side < kSideViews; ++side)
      long_faces = long_faces + longwave_side(v, side, table, sun.share, ldown,
                                              exchange.up(*lup[size_t(side + 1)], ldown), exchange.closed);
  }
  const Val<f32> up = exchange.up(*lup[0], ldown);

  // The body.
  const Val<f32> up_share = slot(kUpShare), side_share_of_body = slot(kSideShare),
                 curved_share = slot(kCurvedShare);
  const Val<f32> around_short = curved * curved_share + faces * side_share_of_body;
  const Val<f32> around_long = long_curved * curved_share + long_faces * side_share_of_body;
  const Val<f32> absorbed = slot(kAbsorbShort) * (around_short + (kdown + *sun.kup[0]) * up_share) +
                            slot(kAbsorbLong) * (around_long + (ldown + up) * up_share);
  const Val<f32> kelvin = sqrt(sqrt(max(absorbed, 0.0f) / slot(kBodySigma)));
  const Val<f32> all_sides = side_share_of_body * float(kSideViews);
  const Val<f32> results[] = {clamp(kelvin - slot(kKelvin), slot(kLowest), slot(kHighest)),
                              kdown,
                              *sun.kup[0],
                              around_short / all_sides,
                              ldown,
                              up,
                              around_long / all_sides,
                              sun.shadow};
  for (int k = 0; k < 8; ++k) out(k, at) = results[k];
}

/// Patches of the sky on planes that face the four sides.
struct SideSums {
  Var<f32> down{0.0f}, given{0.0f}, covered_down{0.0f};  // of open patches, of all, and weight of the others
  std::vector<Var<f32>> light, longwave, covered;

  SideSums(const At<2>& at, const States& states, const Int& patches, const Val<f32>& svf, const Table& table,
           const Table& sides) {
    for (int d = 0; d < kSideViews; ++d)
      for (auto* sums : {&light, &longwave, &covered}) sums->emplace_back(0.0f);
    const Val<f32> tan_view = sqrt((1.0f - svf) / svf);
    for_(0, patches, [&](const Val<i32>& k) {
      const Val<u32> state = (states(k >> 4, at) >> cast<u32>((k & 15) * 2)) & 3u;
      const Val<i32> row = k * kSideRow + kSideHead;
      const auto open = sides.wide<4>(row), plane = sides.wide<4>(row + int(kPlanes));
      const Val<bool> sky = state == 0u, lit = (state == 2u) & (tan_view < open[kLitBelow]);
      const Val<f32> shines =
          select(sky, open[kOpenShort],
                 select(lit, table[int(kWallLitShortwave)], table[int(kWallShadedShortwave)]));
      const Val<f32> glows =
          select(sky, open[kOpenLong], select(lit, sides[row + int(kLitLong)], table[int(kWallRadiance)]));
      down += select(sky, open[kOpenLong] * open[kOpenDown], Val<f32>(0.0f));
      given += glows * open[kOpenDown];
      covered_down += select(sky, Val<f32>(0.0f), open[kOpenDown]);
      for (size_t d = 0; d < size_t(kSideViews); ++d) {
        const Val<f32> weight = plane[int(d)];
        light[d] += shines * weight;
        longwave[d] += glows * weight;
        covered[d] += select(sky, Val<f32>(0.0f), weight);
      }
    });
  }
};

/// The packed sky of a pixel, patch by patch.
struct SkyPatchStates {
  const States& states;
  const Int& patches;
};

void sides_body(const At<2>& at, const Light& light, const Layers& ground, const Layers& albedo,
                const Layers& view, const SkyPatchStates* sky, bool plants, const Table& table,
                const Table& sides, const Layers& state, const Out<f32, 3>& out) {
  const Views v(view, at, plants, table);
  const auto lup = delayed(at, ground, table, state);
  const Sunlight sun(at, light, ground, albedo, v, table);
  const Exchange exchange(at, albedo, table, *lup[0]);
  std::optional<SideSums> patches;
  if (sky) patches.emplace(at, sky->states, sky->patches, v.svf[0], table, sides);
  const Val<f32> reflects = table[int(kReflectedRadiance)];
  const Val<f32> ldown = sky ? exchange.down(patches->given, reflects * patches->covered_down)
                             : longwave_down(v, table, exchange);
  const Val<f32> reflected =
      sky ? select(exchange.closed, ldown + exchange.up(*lup[0], ldown), patches->down + *lup[0]) * reflects
          : Val<f32>(0.0f);
  for (int side = 0; side < kSideViews; ++side) {
    const size_t d = size_t(side);
    const Val<f32> beam = sun.shadow * sides[side];
    out(side, at) = sky ? beam + patches->light[d] + *sun.kup[d + 1] * 0.5f
                        : beam + sun.twice_side(v, d + 1, table) * 0.5f;
    out(kSideViews + side, at) =
        sky ? patches->longwave[d] + reflected * patches->covered[d] + exchange.up(*lup[d + 1], ldown) * 0.5f
            : longwave_side(v, side, table, sun.share, ldown, exchange.up(*lup[d + 1], ldown),
                            exchange.closed);
  }
}

Kernel make_isotropic(bool plants) {
  return kernel(plants ? "urban.radiation.isotropic.plants" : "urban.radiation.isotropic",
                [plants](At<2> at, Light light, Layers ground, Layers albedo, Layers view, Table table,
                         InOut<f32, 3> state, Out<f32, 3> out) {
                  radiation_body(at, light, ground, albedo, view, nullptr, plants, table, state, out);
                });
}

Kernel make_anisotropic(bool plants) {
  return kernel(plants ? "urban.radiation.anisotropic.plants" : "urban.radiation.anisotropic",
                [plants](At<2> at, Light light, Layers ground, Layers albedo, Layers view, States states,
                         Table table, InOut<f32, 3> state, Out<f32, 3> out, Int words, Int runs) {
                  const SkyStates sky{states, words, runs};
                  radiation_body(at, light, ground, albedo, view, &sky, plants, table, state, out);
                });
}

Kernel make_isotropic_sides(bool plants) {
  return kernel(plants ? "urban.radiation.sides.isotropic.plants" : "urban.radiation.sides.isotropic",
                [plants](At<2> at, Light light, Layers ground, Layers albedo, Layers view, Table table,
                         Table sides, Layers state, Out<f32, 3> out) {
                  sides_body(at, light, ground, albedo, view, nullptr, plants, table, sides, state, out);
                });
}

Kernel make_anisotropic_sides(bool plants) {
  return kernel(plants ? "urban.radiation.sides.anisotropic.plants" : "urban.radiation.sides.anisotropic",
                [plants](At<2> at, Light light, Layers ground, Layers albedo, Layers view, States states,
                         Table table, Table sides, Layers state, Out<f32, 3> out, Int patches) {
                  const SkyPatchStates sky{states, patches};
                  sides_body(at, light, ground, albedo, view, &sky, plants, table, sides, state, out);
                });
}

}  // namespace

const Kernel& radiation(bool anisotropic, bool plants) {
  static const Kernel all[2][2] = {{make_isotropic(false), make_isotropic(true)},
                                   {make_anisotropic(false), make_anisotropic(true)}};
  return all[anisotropic][plants];
}

const Kernel& sides(bool anisotropic, bool plants) {
  static const Kernel all[2][2] = {{make_isotropic_sides(false), make_isotropic_sides(true)},
                                   {make_anisotropic_sides(false), make_anisotropic_sides(true)}};
  return all[anisotropic][plants];
}

const Kernel& mean_of_step() {
  static const Kernel k =
      kernel("urban.radiation.mean", [](At<2> at, Layers part, Layers ground, InOut<f32, 3> mean, Int first,
                                        Int last, Param<f32> share, Param<f32> kelvin) {
        const auto sum = [&](int plane, const Val<f32>& value) {
          return select(first != 0, Val<f32>(0.0f), mean(plane, at)) + value * share;
        };
        const Val<f32> warm = part(0, at) + kelvin, square = warm * warm, fourth = sum(0, square * square);
        mean(0, at) = select(last != 0, sqrt(sqrt(fourth)) - kelvin, fourth);
        for (int plane = 1; plane < kMeanPlanes - 1; ++plane) mean(plane, at) = sum(plane, part(plane, at));
        mean(kMeanPlanes - 1, at) = sum(kMeanPlanes - 1, ground(kNormPlane, at));
      });
  return k;
}

const Kernel& mean_of_sides() {
  static const Kernel k = kernel("urban.radiation.mean.sides", [](At<2> at, Layers part, InOut<f32, 3> mean,
                                                                  Int first, Param<f32> share) {
    for (int plane = 0; plane < kSideFluxes; ++plane)
      mean(plane, at) = select(first != 0, Val<f32>(0.0f), mean(plane, at)) + part(plane, at) * share;
  });
  return k;
}

}  // namespace lockstep::urban::kernels
