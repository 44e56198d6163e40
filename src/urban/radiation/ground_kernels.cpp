// Kernels of the ground view: 18 rays over the surface around a pixel.
#include <array>
#include <functional>
#include <numbers>
#include <optional>
#include <string>

#include "urban/radiation/kernels.hpp"
#include "urban/rays/kernels.hpp"

namespace lockstep::urban::kernels {
namespace {

using Flat = Grid<f32, 1>;
using Plane = Grid<f32, 2>;
using Planes = Out<f32, 3>;
using Words = Grid<u32, 3>;
using Ints = Grid<i32, 1>;
using Int = Param<i32>;
using CoverTable = Grid<f32, 1>;

/// First ray of each quarter of the horizon: north-east, south-east, south-west, north-west.
constexpr std::array<int, 5> kQuarters = {0, 5, 9, 14, 18};

/// Sums of rays by quarters, and what becomes of them: all, east, south, west, north.
struct Quarters {
  std::vector<Var<f32>> sums;
  Quarters() {
    for (int q = 0; q < 4; ++q) sums.emplace_back(0.0f);
  }
  std::array<Val<f32>, 5> views() const {
    const Val<f32> ne = sums[0], se = sums[1], sw = sums[2], nw = sums[3];
    const float all = 1.0f / kGroundRays, half = 2.0f / kGroundRays;
    return {((ne + se) + (sw + nw)) * all, (ne + se) * half, (se + sw) * half, (sw + nw) * half,
            (nw + ne) * half};
  }
};

/// A ray as its geometry has it.
struct GroundRay {
  Val<i32> stop;
  Val<bool> leaves, own_wall;
  GroundRay(const Words& geometry, const At<2>& at, const Val<i32>& ray)
      : GroundRay((geometry(ray >> 1, at) >> cast<u32>((ray & 1) * 16)) & 0xffffu) {}

 private:
  explicit GroundRay(const Val<u32>& bits)
      : stop(cast<i32>(bits & u32(kStopMask))),
        leaves((bits & u32(kLeavesRaster)) != 0u),
        own_wall((bits & u32(kOwnWall)) != 0u) {}
};

/// Rays of a roof end where they start.
Val<bool> is_building(const Words& geometry, const At<2>& at) {
  return GroundRay(geometry, at, Val<i32>(0)).stop == 0;
}

/// Steps of a ray: the first `near`, and those from there to `far` in fours.
struct GroundWay {
  const Ints& offsets;
  const Int &near, &far;
  Val<i32> p;

  Val<i32> near_words() const { return (near + (kOffsetRow - 1)) & ~(kOffsetRow - 1); }
  Val<i32> fours() const { return (far - near + (kOffsetRow - 1)) >> 2; }
  Val<i32> first(const Val<i32>& ray) const { return ray * (near_words() + fours() * kOffsetRow); }
  /// pass(pixel, step), outwards
  void walk_near(const Val<i32>& ray, const auto& pass) const {
    const Val<i32> row = first(ray);
    for_(0, near, [&](const Val<i32>& n) { pass(p + offsets[row + n], n); });
  }
  /// Inwards. Steps from `far` on are no steps, at the pixel itself.
  void walk_far(const Val<i32>& ray, const auto& pass) const {
    const Val<i32> row = first(ray) + near_words(), rows = fours();
    for_(0, rows, [&](const Val<i32>& k) {
      const Val<i32> n = (rows - 1 - k) * kOffsetRow;
      const auto four = offsets.wide<kOffsetRow>(row + n);
      for (int m = kOffsetRow - 1; m >= 0; --m) pass(p + four[m], near + n + m);
    });
  }
  /// The pixel of a step ≥ 0.
  Val<i32> place(const Val<i32>& ray, const Val<i32>& step) const {
    const Val<i32> beyond = step - near;
    return p + offsets[first(ray) + select(beyond < 0, step, near_words() + beyond)];
  }
};

/// (0.5 near + 0.4 far) / 0.9
Val<f32> mean_of(const Val<f32>& near, const Val<f32>& far) {
  return near * float(0.5 / 0.9) + far * float(0.4 / 0.9);
}

void geometry_body(const At<2>& at, const Flat& ground, const Plane& walls, const Plane& aspect,
                   const Ints& sides, const Out<u32, 3>& out, const GroundWay& way) {
  const Val<bool> wall = walls[at] > 0.0f, on_ground = ground[way.p] > 0.0f;
  const Val<f32> direction = aspect[at] * float(std::numbers::pi / 180);
  for_(0, kGroundWords, [&](const Val<i32>& word) {
    Var<u32> bits(0u);
    for (int half = 0; half < 2; ++half) {
      const Val<i32> ray = word * 2 + half;
      // The first step that is no ground, twice; one more where it lies outside of the raster.
      Var<i32> first(way.far * 2);
      const auto pass = [&](const Val<i32>& pixel, const Val<i32>& n) {
        const Val<f32> here = ground[pixel];
        const Val<i32> ends = n * 2 + select(here < 0.0f, Val<i32>(1), Val<i32>(0));
        first = min(Val<i32>(first), select(here > 0.0f, Val<i32>(1 << 20), ends));
      };
      if_(
          on_ground,
          [&] {
            way.walk_near(ray, pass);
            way.walk_far(ray, pass);
          },
          [&] { first = 0; });
      const auto side = sides.wide<4>(ray * 4);
      const Val<f32> low = bitcast<f32>(side[1]), high = bitcast<f32>(side[2]);
      const Val<bool> south = !((direction < low) | (direction >= high));
      const Val<bool> north = (direction > low) | (direction <= high);
      const Val<bool> own = wall & ((south & (side[0] == 0)) | (north & (side[0] != 0)));
      const Val<i32> end = first;
      const Val<i32> packed = (end >> 1) | select((end & 1) != 0, Val<i32>(kLeavesRaster), Val<i32>(0)) |
                              select(own, Val<i32>(kOwnWall), Val<i32>(0));
      bits |= cast<u32>(packed) << u32(16 * half);
    }
    out(word, at) = bits;
  });
}

void albedo_body(const At<2>& at, const Words& geometry, const Flat& albedo, const CoverTable& table,
                 const Planes& out, const GroundWay& way, const Int& keep) {
  const Int &near = way.near, &far = way.far;
  const Val<f32> wall = table[int(kWallAlbedo)];
  const Val<bool> building = is_building(geometry, at);
  Quarters quarters;
  if_(!building, [&] {
    for (size_t q = 0; q < 4; ++q)
      for_(kQuarters[q], kQuarters[q + 1], [&](const Val<i32>& ray) {
        const GroundRay g(geometry, at, ray);
        Var<f32> sum(0.0f);
        const auto pass = [&](const Val<i32>& pixel, const Val<i32>& n) {
          sum += select(n < g.stop, albedo[pixel], Val<f32>(0.0f));
        };
        way.walk_near(ray, pass);
        Var<f32> close(sum);
        way.walk_far(ray, pass);
        if_(g.leaves & (keep != 0), [&] {
          const Val<f32> last = albedo[way.place(ray, g.stop - 1)];
          close += last * cast<f32>(max(near - g.stop, 0));
          sum += last * cast<f32>(far - g.stop);
        });
        const auto steps = [&](const Int& reach) {
          return select(g.leaves, Val<f32>(0.0f), cast<f32>(max(Val<i32>(reach) - g.stop, 0)));
        };
        const Val<f32> near_wall = steps(near), far_wall = steps(far);
        const Val<f32> near_part =
            select(near_wall > 0.0f, (near_wall * wall + close) * table[int(kPerNearWall)],
                   Val<f32>(close) * table[int(kPerNear)]);
        quarters.sums[q] += mean_of(near_part, (far_wall * wall + sum) * table[int(kPerFar)]);
      });
  });
  const Val<f32> own = albedo[way.p];
  const auto views = quarters.views();
  for (int v = 0; v < 5; ++v) out(v, at) = select(building, own, views[size_t(v)]);
}

/// Emissivity and the like of a pixel: of its land cover, or of bare ground.
struct Surface {
  Val<f32> excess, emissivity, albedo;
  Val<bool> steady{false};  ///< the excess is the same in the shade
  explicit Surface(const CoverTable& table)
      : excess(table[int(kBareExcess)]),
        emissivity(table[int(kBareEmissivity)]),
        albedo(table[int(kBareAlbedo)]) {}
  Surface(const CoverTable& table, const Val<i32>& cover)
      : Surface(table.wide<4>(kFirstCover + cover * kCoverWords)) {}

 private:
  explicit Surface(const Wide<f32, 4>& row)
      : excess(row[0]), emissivity(row[1]), albedo(row[2]), steady(row[3] != 0.0f) {}
};

/// Longwave of a surface `warm` kelvin above the air, over that of air-warm ground: (air + warm)⁴ − air⁴ without
/// cancellation.
Val<f32> extra_longwave(const Surface& surface, const CoverTable& table, const Val<f32>& warm) {
  const Val<f32> air = table[int(kAir)];
  const Val<f32> extra =
      warm * (2.0f * air + warm) * (2.0f * (air * air) + (2.0f * air) * warm + warm * warm);
  return table[int(kSigma)] * surface.emissivity * extra;
}

/// Longwave that a pixel sends above that of air-warm ground, and its sunlit albedo, where surfaces differ.
struct GivenPlanes {
  const Out<f32, 2>&lup, &albedo;
};

void surface_body(const At<2>& at, const Grid<f32, 3>& shadow, const Grid<f32, 3>& lit, const Plane& walls,
                  const CoverTable& table, bool plants, const Out<u32, 2>& light, const Surface* surface,
                  const GivenPlanes* given) {
  const Val<bool> open = shadow(ShadowPlanes::kSun, at) != 0.0f;
  const Val<bool> under = plants ? shadow(ShadowPlanes::kVegetation, at) == 0.0f : Val<bool>(false);
  const Val<f32> wall = walls[at], bright = lit(0, at);
  const Val<bool> whole = bright == wall, any = bright > 0.0f;
  const Val<bool> beside =
      (wall > 0.0f) & ((any & (table[int(kAnyWall)] != 0.0f)) | (whole & (table[int(kAnyWall)] == 0.0f)));
  const auto flag = [](const Val<bool>& is, u32 bit) { return select(is, Val<u32>(bit), Val<u32>(0u)); };
  light[at] = flag(open & !under, kInSun) | flag(open & under, kUnderPlant) | flag(beside, kBesideSunlitWall);
  if (!given) return;
  const Val<f32> share = select(open, select(under, table[int(kCanopy)], Val<f32>(1.0f)), Val<f32>(0.0f));
  const Val<f32> warm = surface->excess * select(surface->steady, Val<f32>(1.0f), share);
  given->lup[at] = extra_longwave(*surface, table, warm);
  given->albedo[at] = surface->albedo * share;
}

struct GroundFields {
  Grid<u32, 1> light;
  std::optional<Flat> lup, albedo;
  bool covers() const { return lup.has_value(); }
};

/// Sum over the ground of a ray.
struct RaySum {
  Val<f32> lup, albedo, share;
};

/// Sums over the ground of one ray. Where all ground is of one kind, counts of pixels in the sun and under plants
/// tell everything.
struct RaySums {
  const GroundFields& fields;
  const Surface& surface;
  const CoverTable& table;
  Var<u32> counts{0u};
  Var<f32> lup{0.0f}, albedo{0.0f};
  Var<i32> first_wall{kNoStep};

  static constexpr int kNoStep = 1 << 20;

  /// Adds pixel q if step n is before the ray's stop. Far steps are traversed inwards.
  void add(const Val<i32>& q, const Val<i32>& n, const Val<i32>& stop) {
    const Val<bool> inside = n < stop;
    const Val<u32> light = select(inside, fields.light[q], Val<u32>(0u));
    counts += light;
    first_wall = select((light & kBesideSunlitWall) != 0u, n, Val<i32>(first_wall));
    if (!fields.covers()) return;
    lup += select(inside, (*fields.lup)[q], Val<f32>(0.0f));
    albedo += select(inside, (*fields.albedo)[q], Val<f32>(0.0f));
  }
  void repeat(const Val<i32>& q, const Val<i32>& times) {
    counts += (fields.light[q] & (kBesideSunlitWall - 1)) * cast<u32>(times);
    if (!fields.covers()) return;
    lup += (*fields.lup)[q] * cast<f32>(times);
    albedo += (*fields.albedo)[q] * cast<f32>(times);
  }
  RaySum total() const {
    const Val<u32> both = counts;
    const Val<f32> open = cast<f32>(cast<i32>(both & kCountMask)),
                   under = cast<f32>(cast<i32>((both >> kUnderPlantShift) & kCountMask));
    const Val<f32> share = under * table[int(kCanopy)] + open;
    if (fields.covers()) return {lup, albedo, share};
    return {under * table[int(kBareUnderPlant)] + open * table[int(kBareInSun)], share * surface.albedo,
            share};
  }
};

void view_body(const At<2>& at, const Words& geometry, const GroundFields& fields, const Surface& surface,
               const CoverTable& table, const Planes& out, const GroundWay& way, const Int& keep) {
  const Int &near = way.near, &far = way.far;
  Quarters lup_sums, albedo_sums;
  Var<f32> norm(0.0f);
  const Val<f32> wall_lup = table[int(kWallExtra)], wall_albedo = table[int(kWallAlbedo)];
  const Val<f32> per_near = table[int(kPerNear)], per_near_wall = table[int(kPerNearWall)],
                 per_far = table[int(kPerFar)], per_far_wall = table[int(kPerFarWall)];
  const Val<bool> building = is_building(geometry, at);
  if_(!building, [&] {
    for (size_t q = 0; q < 4; ++q)
      for_(kQuarters[q], kQuarters[q + 1], [&](const Val<i32>& ray) {
        const GroundRay g(geometry, at, ray);
        RaySums sums{fields, surface, table};
        const auto pass = [&](const Val<i32>& pixel, const Val<i32>& n) { sums.add(pixel, n, g.stop); };
        const auto last = [&] { return way.place(ray, g.stop - 1); };
        Var<i32> near_first(RaySums::kNoStep);
        way.walk_near(ray, [&](const Val<i32>& pixel, const Val<i32>& n) {
          pass(pixel, n);
          near_first = min(Val<i32>(near_first), Val<i32>(sums.first_wall));
        });
        const Val<bool> edge = g.leaves & (keep != 0);
        if_(edge & (g.stop < near), [&] { sums.repeat(last(), near - g.stop); });
        const RaySum close = sums.total();
        const Val<i32> near_wall = near_first;
        sums.first_wall = RaySums::kNoStep;
        way.walk_far(ray, pass);
        if_(edge, [&] { sums.repeat(last(), far - max(g.stop, near)); });
        const RaySum all = sums.total();
        const Val<i32> far_wall = min(near_wall, Val<i32>(sums.first_wall));
        const Val<f32> walls_near = cast<f32>(max(near - near_wall, 0)),
                       all_walls = cast<f32>(max(far - far_wall, 0));
        const Val<bool> sees_near = walls_near > 0.0f, sees_far = all_walls > 0.0f;
        const Val<f32> walls_far = select(g.own_wall & (far_wall == 0), Val<f32>(0.0f), all_walls);
        const auto near_part = [&](const Val<f32>& ground, const Val<f32>& wall) {
          return select(sees_near, (walls_near * wall + ground) * per_near_wall, ground * per_near);
        };
        const auto far_part = [&](const Val<f32>& ground, const Val<f32>& wall) {
          return select(sees_far, (walls_far * wall + ground) * per_far_wall, ground * per_far);
        };
        lup_sums.sums[q] += mean_of(near_part(close.lup, wall_lup), far_part(all.lup, wall_lup));
        albedo_sums.sums[q] +=
            mean_of(near_part(close.albedo, wall_albedo), far_part(all.albedo, wall_albedo));
        norm += min(far_part(all.share, Val<f32>(1.0f)), 1.0f);
      });
  });
  const Val<f32> base = surface.emissivity * table[int(kAirLongwave)];
  const auto on_roofs = [&](const Val<f32>& own) { return select(building, own, Val<f32>(0.0f)); };
  RaySums here{fields, surface, table};
  here.add(way.p, Val<i32>(0), Val<i32>(1));
  const RaySum own = here.total();
  const Val<f32> roof_lup = on_roofs(own.lup), roof_albedo = on_roofs(own.albedo);
  const auto lup = lup_sums.views(), albedo = albedo_sums.views();
  for (int v = 0; v < 5; ++v) {
    out(kLupPlane + v, at) = lup[size_t(v)] + roof_lup + base;
    out(kAlbedoPlane + v, at) = albedo[size_t(v)] + roof_albedo;
  }
  out(kNormPlane, at) = select(building, Val<f32>(1.0f), norm * (1.0f / kGroundRays));
}

void night_body(const At<2>& at, const Surface& surface, const CoverTable& table, const Planes& out) {
  const Val<f32> lup =
      surface.emissivity * table[int(kAirLongwave)] + extra_longwave(surface, table, surface.excess);
  for (int v = 0; v < kGroundPlanes; ++v) out(v, at) = v < kAlbedoPlane ? lup : Val<f32>(0.0f);
}

template <bool kPlants>
Kernel surface_with_covers() {
  return kernel(kPlants ? "urban.radiation.surface.plants.cover" : "urban.radiation.surface.cover",
                [](At<2> at, Grid<f32, 3> shadow, Grid<f32, 3> lit, Plane walls, Grid<i32, 2> cover,
                   CoverTable table, Out<u32, 2> light, Out<f32, 2> lup, Out<f32, 2> albedo) {
                  const Surface surface(table, cover[at]);
                  const GivenPlanes given{lup, albedo};
                  surface_body(at, shadow, lit, walls, table, kPlants, light, &surface, &given);
                });
}
template <bool kPlants>
Kernel surface_bare() {
  return kernel(
      kPlants ? "urban.radiation.surface.plants" : "urban.radiation.surface",
      [](At<2> at, Grid<f32, 3> shadow, Grid<f32, 3> lit, Plane walls, CoverTable table, Out<u32, 2> light) {
        surface_body(at, shadow, lit, walls, table, kPlants, light, nullptr, nullptr);
      });
}

/// A core pixel's place in a padded ground grid, of which it lies `far` inside.
Val<i32> padded_place(const At<2>& at, const Int& far, const Int& pitch) {
  return (at.y + far) * pitch + (at.x + far);
}

}  // namespace

const Kernel& ground_geometry() {
  static const Kernel k = kernel("urban.gvf.geometry", [](At<2> at, Flat ground, Plane walls, Plane aspect,
                                                          Ints offsets, Ints sides, Out<u32, 3> out, Int near,
                                                          Int far, Int pitch) {
    geometry_body(at, ground, walls, aspect, sides, out, {offsets, near, far, padded_place(at, far, pitch)});
  });
  return k;
}

const Kernel& ground_albedo() {
  static const Kernel k = kernel("urban.gvf.albedo", [](At<2> at, Words geometry, Flat albedo, Ints offsets,
                                                        CoverTable table, Planes out, Int near, Int far,
                                                        Int pitch, Int keep) {
    albedo_body(at, geometry, albedo, table, out, {offsets, near, far, padded_place(at, far, pitch)}, keep);
  });
  return k;
}

const Kernel& ground_surface(bool plants, bool covers) {
  static const Kernel all[2][2] = {{surface_bare<false>(), surface_with_covers<false>()},
                                   {surface_bare<true>(), surface_with_covers<true>()}};
  return all[plants][covers];
}

const Kernel& ground_view(bool covers) {
  static const Kernel bare =
      kernel("urban.gvf", [](At<2> at, Words geometry, Grid<u32, 1> light, Ints offsets, CoverTable table,
                             Planes out, Int near, Int far, Int pitch, Int keep) {
        view_body(at, geometry, {light, {}, {}}, Surface(table), table, out,
                  {offsets, near, far, padded_place(at, far, pitch)}, keep);
      });
  static const Kernel covered =
      kernel("urban.gvf.cover",
             [](At<2> at, Words geometry, Grid<u32, 1> light, Flat lup, Flat albedo, Grid<i32, 2> cover,
                Ints offsets, CoverTable table, Planes out, Int near, Int far, Int pitch, Int keep) {
               view_body(at, geometry, {light, lup, albedo}, Surface(table, cover[at]), table, out,
                         {offsets, near, far, padded_place(at, far, pitch)}, keep);
             });
  return covers ? covered : bare;
}

const Kernel& ground_night(bool covers) {
  static const Kernel bare = kernel("urban.gvf.night", [](At<2> at, CoverTable table, Planes out) {
    night_body(at, Surface(table), table, out);
  });
  static const Kernel covered =
      kernel("urban.gvf.night.cover", [](At<2> at, Grid<i32, 2> cover, CoverTable table, Planes out) {
        night_body(at, Surface(table, cover[at]), table, out);
      });
  return covers ? covered : bare;
}

}  // namespace lockstep::urban::kernels
