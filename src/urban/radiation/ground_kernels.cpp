// Kernels of the ground view: 18 rays over the surface around a pixel.
#include <array>
#include <functional>
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
using Table = Grid<f32, 1>;

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

/// (0.5 near + 0.4 far) / 0.9
Val<f32> mean_of(const Val<f32>& near, const Val<f32>& far) {
  return near * float(0.5 / 0.9) + far * float(0.4 / 0.9);
}

void geometry_body(const At<2>& at, const Plane& ground, const Plane& walls, const Plane& aspect,
                   const Ints& steps, const Ints& sides, const Out<u32, 3>& out, const Int& far,
                   const Int& row0, const Int& col0) {
  const Val<i32> row = at.y + row0, col = at.x + col0, rows = ground.size(0), cols = ground.size(1);
  const Val<bool> wall = walls(row, col) > 0.0f;
  const Val<f32> direction = aspect(row, col) * float(std::numbers::pi / 180);
  for_(0, kGroundWords, [&](const Val<i32>& word) {
    Var<u32> bits(0u);
    for (int half = 0; half < 2; ++half) {
      const Val<i32> ray = word * 2 + half;
      Var<i32> stop(0);
      Var<u32> leaves(0u);
      for_(0, far, [&](const Val<i32>& n) {
        const auto step = steps.wide<2>((ray * far + n) * 2);
        const Val<i32> r = row + step[0], c = col + step[1];
        const Val<bool> inside = (r >= 0) & (r < rows) & (c >= 0) & (c < cols);
        if_(!inside, [&] {
          leaves = u32(kLeavesRaster);
          break_();
        });
        break_if(ground(r, c) == 0.0f);
        stop = n + 1;
      });
      const auto side = sides.wide<4>(ray * 4);
      const Val<f32> low = bitcast<f32>(side[1]), high = bitcast<f32>(side[2]);
      const Val<bool> south = !((direction < low) | (direction >= high));
      const Val<bool> north = (direction > low) | (direction <= high);
      const Val<bool> own = wall & ((south & (side[0] == 0)) | (north & (side[0] != 0)));
      const Val<u32> packed =
          cast<u32>(Val<i32>(stop)) | Val<u32>(leaves) | select(own, Val<u32>(u32(kOwnWall)), Val<u32>(0u));
      bits |= packed << u32(16 * half);
    }
    out(word, at) = bits;
  });
}

void albedo_body(const At<2>& at, const Words& geometry, const Flat& albedo, const Ints& offsets,
                 const Table& table, const Planes& out, const Int& near, const Int& far, const Int& row0,
                 const Int& col0, const Int& pitch, const Int& keep) {
  const Val<i32> p = (at.y + row0) * pitch + (at.x + col0);
  const Val<f32> wall = table[int(kWallAlbedo)];
  Quarters quarters;
  for (size_t q = 0; q < 4; ++q)
    for_(kQuarters[q], kQuarters[q + 1], [&](const Val<i32>& ray) {
      const GroundRay g(geometry, at, ray);
      const Val<i32> first = ray * far;
      Var<f32> sum(0.0f), close(0.0f);
      for_(0, g.stop, [&](const Val<i32>& n) {
        sum += albedo[p + offsets[first + n]];
        if_(n < near, [&] { close = sum; });
      });
      if_(g.leaves & (keep != 0), [&] {
        const Val<f32> last = albedo[p + offsets[first + g.stop - 1]];
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
  const Val<f32> own = albedo[p];
  const Val<bool> building = GroundRay(geometry, at, Val<i32>(0)).stop == 0;
  const auto views = quarters.views();
  for (int v = 0; v < 5; ++v) out(v, at) = select(building, own, views[size_t(v)]);
}

/// Emissivity and the like of a pixel: of its land cover, or of bare ground.
struct Surface {
  Val<f32> excess, emissivity, albedo;
  explicit Surface(const Table& table)
      : excess(table[int(kBareExcess)]),
        emissivity(table[int(kBareEmissivity)]),
        albedo(table[int(kBareAlbedo)]) {}
  Surface(const Table& table, const Val<i32>& cover)
      : Surface(table.wide<4>(kFirstCover + cover * kCoverWords)) {}

 private:
  explicit Surface(const Wide<f32, 4>& row) : excess(row[0]), emissivity(row[1]), albedo(row[2]) {}
};

void surface_body(const At<2>& at, const Grid<f32, 3>& shadow, const Grid<f32, 3>& lit, const Plane& walls,
                  const Surface& surface, const Table& table, bool plants, const Out<f32, 2>& sun,
                  const Out<f32, 2>& lup, const Out<f32, 2>* albedo) {
  Val<f32> share = shadow(ShadowPlanes::kSun, at);
  if (plants) share = share - (1.0f - shadow(ShadowPlanes::kVegetation, at)) * (1.0f - table[int(kCanopy)]);
  const Val<f32> wall = walls[at], bright = lit(0, at);
  const Val<bool> whole = bright == wall, any = bright > 0.0f;
  const Val<bool> beside = (wall > 0.0f) & select(table[int(kAnyWall)] != 0.0f, any, whole);
  const Val<f32> air = table[int(kAir)], warm = surface.excess * share;
  // (air + warm)⁴ − air⁴ without cancellation
  const Val<f32> extra =
      warm * (2.0f * air + warm) * (2.0f * (air * air) + (2.0f * air) * warm + warm * warm);
  sun[at] = select(beside, -share, share);
  lup[at] = table[int(kSigma)] * surface.emissivity * extra;
  if (albedo) (*albedo)[at] = surface.albedo * share;
}

/// A value's sign bit, also of −0.
Val<bool> marked(const Val<f32>& value) { return bitcast<i32>(value) < 0; }

struct GroundFields {
  Flat sun, lup;
  std::optional<Flat> albedo;
};

/// Sums over the ground of one ray.
struct RaySums {
  const GroundFields& fields;
  Var<f32> lup{0.0f}, sun{0.0f}, albedo{0.0f};
  Var<i32> first_wall{1 << 20};

  void add(const Val<i32>& q, const Val<i32>& n) {
    const Val<f32> share = fields.sun[q];
    lup += fields.lup[q];
    sun += abs(share);
    if (fields.albedo) albedo += (*fields.albedo)[q];
    first_wall = min(Val<i32>(first_wall), select(marked(share), n, Val<i32>(1 << 20)));
  }
  void repeat(const Val<i32>& q, const Val<i32>& times) {
    const Val<f32> count = cast<f32>(times);
    lup += fields.lup[q] * count;
    sun += abs(fields.sun[q]) * count;
    if (fields.albedo) albedo += (*fields.albedo)[q] * count;
  }
};

void view_body(const At<2>& at, const Words& geometry, const GroundFields& fields, const Ints& offsets,
               const Surface& surface, const Table& table, const Planes& out, const Int& near, const Int& far,
               const Val<i32>& p, const Int& keep) {
  Quarters lup_sums, albedo_sums;
  Var<f32> norm(0.0f);
  const Val<f32> wall_lup = table[int(kWallExtra)], wall_albedo = table[int(kWallAlbedo)];
  const Val<f32> per_near = table[int(kPerNear)], per_near_wall = table[int(kPerNearWall)],
                 per_far = table[int(kPerFar)], per_far_wall = table[int(kPerFarWall)];
  for (size_t q = 0; q < 4; ++q)
    for_(kQuarters[q], kQuarters[q + 1], [&](const Val<i32>& ray) {
      const GroundRay g(geometry, at, ray);
      const Val<i32> first = ray * far;
      RaySums sums{fields};
      const auto pass = [&](const Val<i32>& n) { sums.add(p + offsets[first + n], n); };
      for_(0, near, [&](const Val<i32>& n) {
        break_if(n >= g.stop);
        pass(n);
      });
      const Val<bool> edge = g.leaves & (keep != 0);
      const auto last = [&] { return p + offsets[first + g.stop - 1]; };
      if_(edge & (g.stop < near), [&] { sums.repeat(last(), near - g.stop); });
      const Val<f32> near_lup = sums.lup, near_sun = sums.sun, near_albedo = sums.albedo;
      const Val<i32> near_wall = sums.first_wall;
      for_(near, far, [&](const Val<i32>& n) {
        break_if(n >= g.stop);
        pass(n);
      });
      if_(edge, [&] { sums.repeat(last(), far - max(g.stop, near)); });
      const Val<i32> far_wall = sums.first_wall;
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
      const Val<f32> far_sun = sums.sun;
      const Val<f32> albedo_near = fields.albedo ? near_albedo : near_sun * surface.albedo;
      const Val<f32> albedo_far = fields.albedo ? Val<f32>(sums.albedo) : far_sun * surface.albedo;
      lup_sums.sums[q] += mean_of(near_part(near_lup, wall_lup), far_part(sums.lup, wall_lup));
      albedo_sums.sums[q] += mean_of(near_part(albedo_near, wall_albedo), far_part(albedo_far, wall_albedo));
      norm += min(far_part(far_sun, Val<f32>(1.0f)), 1.0f);
    });
  const Val<bool> building = GroundRay(geometry, at, Val<i32>(0)).stop == 0;
  const Val<f32> base = surface.emissivity * table[int(kAirLongwave)];
  const auto on_roofs = [&](const Val<f32>& own) { return select(building, own, Val<f32>(0.0f)); };
  const Val<f32> roof_lup = on_roofs(fields.lup[p]);
  const Val<f32> roof_albedo =
      on_roofs(fields.albedo ? (*fields.albedo)[p] : surface.albedo * abs(fields.sun[p]));
  const auto lup = lup_sums.views(), albedo = albedo_sums.views();
  for (int v = 0; v < 5; ++v) {
    out(kLupPlane + v, at) = lup[size_t(v)] + roof_lup + base;
    out(kAlbedoPlane + v, at) = albedo[size_t(v)] + roof_albedo;
  }
  out(kNormPlane, at) = select(building, Val<f32>(1.0f), norm * (1.0f / kGroundRays));
}

void night_body(const At<2>& at, const Surface& surface, const Table& table, const Planes& out) {
  for (int v = 0; v < kGroundPlanes; ++v)
    out(v, at) = v < kAlbedoPlane ? surface.emissivity * table[int(kAirLongwave)] : Val<f32>(0.0f);
}

template <bool kPlants>
Kernel surface_with_covers() {
  return kernel(kPlants ? "urban.radiation.surface.plants.cover" : "urban.radiation.surface.cover",
                [](At<2> at, Grid<f32, 3> shadow, Grid<f32, 3> lit, Plane walls, Grid<i32, 2> cover,
                   Table table, Out<f32, 2> sun, Out<f32, 2> lup, Out<f32, 2> albedo) {
                  surface_body(at, shadow, lit, walls, Surface(table, cover[at]), table, kPlants, sun, lup,
                               &albedo);
                });
}
template <bool kPlants>
Kernel surface_bare() {
  return kernel(kPlants ? "urban.radiation.surface.plants" : "urban.radiation.surface",
                [](At<2> at, Grid<f32, 3> shadow, Grid<f32, 3> lit, Plane walls, Table table, Out<f32, 2> sun,
                   Out<f32, 2> lup) {
                  surface_body(at, shadow, lit, walls, Surface(table), table, kPlants, sun, lup, nullptr);
                });
}

}  // namespace

const Kernel& ground_geometry() {
  static const Kernel k = kernel(
      "urban.gvf.geometry",
      [](At<2> at, Plane ground, Plane walls, Plane aspect, Ints steps, Ints sides, Out<u32, 3> out, Int far,
         Int row, Int col) { geometry_body(at, ground, walls, aspect, steps, sides, out, far, row, col); });
  return k;
}

const Kernel& ground_albedo() {
  static const Kernel k =
      kernel("urban.gvf.albedo", [](At<2> at, Words geometry, Flat albedo, Ints offsets, Table table,
                                    Planes out, Int near, Int far, Int row, Int col, Int pitch, Int keep) {
        albedo_body(at, geometry, albedo, offsets, table, out, near, far, row, col, pitch, keep);
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
      kernel("urban.gvf", [](At<2> at, Words geometry, Flat sun, Flat lup, Ints offsets, Table table,
                             Planes out, Int near, Int far, Int row, Int col, Int pitch, Int keep) {
        view_body(at, geometry, {sun, lup, {}}, offsets, Surface(table), table, out, near, far,
                  (at.y + row) * pitch + (at.x + col), keep);
      });
  static const Kernel covered =
      kernel("urban.gvf.cover", [](At<2> at, Words geometry, Flat sun, Flat lup, Flat albedo,
                                   Grid<i32, 2> cover, Ints offsets, Table table, Planes out, Int near,
                                   Int far, Int row, Int col, Int pitch, Int keep) {
        view_body(at, geometry, {sun, lup, albedo}, offsets, Surface(table, cover(at.y + row, at.x + col)),
                  table, out, near, far, (at.y + row) * pitch + (at.x + col), keep);
      });
  return covers ? covered : bare;
}

const Kernel& ground_night(bool covers) {
  static const Kernel bare = kernel("urban.gvf.night", [](At<2> at, Table table, Planes out) {
    night_body(at, Surface(table), table, out);
  });
  static const Kernel covered = kernel(
      "urban.gvf.night.cover", [](At<2> at, Grid<i32, 2> cover, Table table, Planes out, Int row, Int col) {
        night_body(at, Surface(table, cover(at.y + row, at.x + col)), table, out);
      });
  return covers ? covered : bare;
}

}  // namespace lockstep::urban::kernels
