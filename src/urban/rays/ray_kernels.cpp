// Kernels that cast rays. A ray processes its steps in spans of 32 and chunks of 8; a maximum over all pixels
// that a span or chunk can touch decides whether any of its steps may matter. Skipping is exact: heights are
// compared after the same rounded subtraction, which is monotonous.
#include <optional>
#include <string>
#include <vector>

#include "urban/city/prepare.hpp"
#include "urban/rays/facing.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/rays/ray_table.hpp"

namespace lockstep::urban::kernels {
namespace {

using Heights = Grid<f32, 1>;

/// The padded buffers of a window.
struct Fields {
  Heights dsm, near_dsm, far;
  std::optional<Heights> canopy, trunk, near_canopy;
  bool plants() const { return canopy.has_value(); }
};

/// The lane's pixel.
struct Pixel {
  Val<i32> row, col, index;

  Pixel(const Val<i32>& y, const Val<i32>& x, const Param<i32>& row0, const Param<i32>& col0,
        const Param<i32>& pitch)
      : row(y + row0), col(x + col0), index((row + kPad) * pitch + col + kPad) {}
};

/// Table words with their floats.
struct Table {
  Grid<i32, 1> words;
  Wide<i32, 4> four(const Val<i32>& at) const { return words.wide<4>(at); }
  static Val<f32> real(const Val<i32>& word) { return bitcast<f32>(word); }
};

/// Objects that a ray has met so far.
struct Meeting {
  Var<bool> building{false};
  Var<bool> plants;
  std::optional<Var<f32>> shade;  // height up to which buildings shade the pixel
  std::optional<Var<f32>> crown;  // the same for plants

  Val<u32> state() const {
    const Val<bool> b = building, p = plants;
    return select(b, select(p, Val<u32>(3), Val<u32>(2)), select(p, Val<u32>(1), Val<u32>(0)));
  }
};

/// The eight steps of a chunk, straight through. `leaves`: plants may matter too.
void pass_chunk(const Fields& f, const Table& table, const Val<i32>& record, const Val<f32>& before_first,
                const Val<i32>& pixel, const Val<f32>& height, bool leaves, Meeting& m) {
  std::vector<Val<i32>> at;
  std::vector<Val<f32>> rise;
  for (int half = 0; half < 2; ++half) {
    const auto offsets = table.four(record + (kOffsets + 4 * half)),
               rises = table.four(record + (kRises + 4 * half));
    for (int k = 0; k < 4; ++k) {
      at.push_back(pixel + offsets[k]);
      rise.push_back(Table::real(rises[k]));
    }
  }
  Val<f32> before = before_first;
  Val<bool> building = m.building, plants = m.plants;
  for (size_t k = 0; k < kChunkSteps; ++k) {
    const Val<f32> roof = f.dsm[at[k]] - rise[k];
    building = building | (roof > height);
    if (m.shade) *m.shade = max(Val<f32>(*m.shade), roof);
    if (leaves) {
      // With trunk ≤ canopy and the rise growing, 1, 2 or 3 of the four comparisons hold where the canopy was
      // above the ray a step ago and the trunk zone is not above it now.
      const Val<f32> canopy = (*f.canopy)[at[k]], trunk = (*f.trunk)[at[k]];
      const Val<bool> inside = (canopy - before > height) & !(trunk - rise[k] > height);
      plants = plants | (inside & !building);
      if (m.crown) *m.crown = max(Val<f32>(*m.crown), canopy - rise[k]);
    }
    before = rise[k];
  }
  m.building = building;
  m.plants = plants;
}

/// Casts ray number `ray` of the table from a pixel that is not missing.
void cast_ray(const Fields& f, const Table& table, const Val<i32>& ray, const Pixel& p,
              const Val<f32>& height, const Param<f32>& highest, Meeting& m) {
  const auto head = table.four(ray * kRayHead), tail = table.four(ray * kRayHead + 4);
  const Val<f32> rows = fma(Table::real(tail[kRowSlope - 4]), cast<f32>(p.row), Table::real(head[kRowBase]));
  const Val<f32> cols =
      fma(Table::real(tail[kColSlope - 4]), cast<f32>(p.col), Table::real(tail[kColBase - 4]));
  const Val<f32> relief = (Val<f32>(highest) - height) * Table::real(head[kStepsPerMetre]);
  const Val<i32> limit = cast<i32>(min(min(min(rows, cols), relief), 1e9f)) + 3;
  const bool heights = m.shade.has_value();
  for_(0, head[kSpans], [&](const Val<i32>& span) {
    break_if(span * kSpanSteps >= limit);
    const Val<i32> first = head[kFirstRecord] + span * (kSpanChunks * kChunkWords);
    const auto corner = table.four(first);
    continue_if(!(f.far[p.index + corner[kSpanCorner]] - Table::real(corner[kRiseBefore]) > height));
    for_(0, kSpanChunks, [&](const Val<i32>& chunk) {
      const Val<i32> record = first + chunk * kChunkWords;
      const auto lead = table.four(record);
      const Val<f32> before = Table::real(lead[kRiseBefore]);
      const Val<f32> rise = Table::real(table.words[record + kRises]);
      const Val<i32> at = p.index + lead[kCorner];
      const Val<f32> sill = m.shade ? Val<f32>(*m.shade) : height;
      const Val<bool> roofs = f.near_dsm[at] - rise > sill;
      const auto past_roofs = [&] {
        if_(roofs, [&] { pass_chunk(f, table, record, before, p.index, height, false, m); });
      };
      if (!f.plants()) {
        past_roofs();
      } else {
        const Val<f32> crowns = (*f.near_canopy)[at];
        Val<bool> leaves = (crowns - before > height) & (!Val<bool>(m.plants));
        if (m.crown) leaves = (leaves | (crowns - rise > Val<f32>(*m.crown))) & !Val<bool>(m.building);
        if_(leaves, [&] { pass_chunk(f, table, record, before, p.index, height, true, m); }, past_roofs);
      }
      if (!heights) break_if(m.building);
    });
    if (!heights) break_if(m.building);
  });
}

Val<bool> bush(const Fields& f, const Val<i32>& pixel) {
  return ((*f.trunk)[pixel] == 0.0f) & ((*f.canopy)[pixel] > 1.0f);
}
Val<bool> is_missing(const Val<f32>& height) { return height < 0.5f * kNoHeight; }

using Table1 = Grid<i32, 1>;
using Planes = Out<f32, 3>;
using Int = Param<i32>;
using Real = Param<f32>;

/// Shared body of the shadow kernels; planes as ShadowPlanes has them.
void shadow_body(const At<2>& at, const Fields& f, const Table& table, const Planes& out, bool heights,
                 const Pixel& p, const Param<f32>& highest) {
  const ShadowPlanes planes{f.plants(), heights};
  const Val<f32> height = f.dsm[p.index];
  const Val<bool> missing = is_missing(height);
  Meeting m{Var<bool>(false), Var<bool>(f.plants() ? bush(f, p.index) & !missing : Val<bool>(false)), {}, {}};
  if (heights) m.shade.emplace(height);
  if (heights && f.plants()) m.crown.emplace(height);
  if_(!missing, [&] { cast_ray(f, table, Val<i32>(0), p, height, highest, m); });
  const Val<bool> building = m.building, plants = m.plants;
  const auto bit = [](const Val<bool>& yes) { return select(yes, Val<f32>(1.0f), Val<f32>(0.0f)); };
  out(ShadowPlanes::kSun, at) = bit(!building);
  if (f.plants()) {
    out(ShadowPlanes::kVegetation, at) = bit(building | !plants);
    out(ShadowPlanes::kBefore, at) = bit(!(building & plants));
  }
  if (heights) out(planes.shade(), at) = Val<f32>(*m.shade);
  if (heights && f.plants())
    out(planes.depth(), at) = select(plants & !building, Val<f32>(*m.crown) - height, Val<f32>(0.0f));
}

Kernel make_shadow(bool plants, bool heights) {
  const std::string name =
      std::string("urban.shadow") + (plants ? ".plants" : "") + (heights ? ".heights" : "");
  if (plants)
    return kernel(name, [heights](At<2> at, Heights dsm, Heights near_dsm, Heights far, Heights canopy,
                                  Heights trunk, Heights near_canopy, Table1 table, Planes out, Int row,
                                  Int col, Int pitch, Real highest) {
      shadow_body(at, {dsm, near_dsm, far, canopy, trunk, near_canopy}, {table}, out, heights,
                  {at.y, at.x, row, col, pitch}, highest);
    });
  return kernel(name, [heights](At<2> at, Heights dsm, Heights near_dsm, Heights far, Table1 table,
                                Planes out, Int row, Int col, Int pitch, Real highest) {
    shadow_body(at, {dsm, near_dsm, far, {}, {}, {}}, {table}, out, heights, {at.y, at.x, row, col, pitch},
                highest);
  });
}

void states_body(const At<3>& at, const Fields& f, const Table& table, const Out<u32, 3>& words,
                 const Int& first_patch, const Int& patches, const Pixel& p, const Real& highest) {
  const Val<f32> height = f.dsm[p.index];
  Var<u32> word(0u);
  if_(!is_missing(height), [&] {
    const Val<bool> own_bush = f.plants() ? bush(f, p.index) : Val<bool>(false);
    const Val<i32> first = first_patch + Val<i32>(at.z) * 16;
    for_(first, min(first + 16, patches), [&](const Val<i32>& patch) {
      const Val<bool> open = table.words[patch * kRayHead + kSpans] == 0;
      Meeting m{Var<bool>(false), Var<bool>(own_bush & !open), {}, {}};
      cast_ray(f, table, patch, p, height, highest, m);
      word |= m.state() << cast<u32>((patch - first) * 2);
    });
  });
  words[at] = word;
}

Kernel make_sky_states(bool plants) {
  if (plants)
    return kernel("urban.svf.states.plants",
                  [](At<3> at, Heights dsm, Heights near_dsm, Heights far, Heights canopy, Heights trunk,
                     Heights near_canopy, Table1 table, Out<u32, 3> words, Int first_patch, Int patches,
                     Int row, Int col, Int pitch, Real highest) {
                    states_body(at, {dsm, near_dsm, far, canopy, trunk, near_canopy}, {table}, words,
                                first_patch, patches, {at.y, at.x, row, col, pitch}, highest);
                  });
  return kernel("urban.svf.states",
                [](At<3> at, Heights dsm, Heights near_dsm, Heights far, Table1 table, Out<u32, 3> words,
                   Int first_patch, Int patches, Int row, Int col, Int pitch, Real highest) {
                  states_body(at, {dsm, near_dsm, far, {}, {}, {}}, {table}, words, first_patch, patches,
                              {at.y, at.x, row, col, pitch}, highest);
                });
}

using Points = InOut<i32, 2>;

/// A wall has no bush of its own: a crown on its pixel is met by the ray's first step.
void facade_body(const At<1>& at, const Fields& f, const Table& table, const Points& points,
                 const Val<bool>& away, const Pixel& p, const Param<f32>& highest) {
  const Val<f32> height = bitcast<f32>(points(FacadeRows::kHeight, at));
  Meeting m{Var<bool>(false), Var<bool>(false), {}, {}};
  if_(!away, [&] { cast_ray(f, table, Val<i32>(0), p, height, highest, m); });
  const Val<bool> open = !(away | Val<bool>(m.building));
  const auto add = [&](int row, const Val<bool>& sees) {
    points(row, at) = points(row, at) + select(sees, Val<i32>(1), Val<i32>(0));
  };
  add(FacadeRows::kPastBuildings, open);
  add(FacadeRows::kPastPlants, open & !Val<bool>(m.plants));
}

Kernel make_facade_sun(bool plants) {
  const auto body = [](const At<1>& at, const Fields& f, const Table1& table, const Points& points,
                       const Int& branch, const Real& low, const Real& high, const Int& row, const Int& col,
                       const Int& pitch, const Real& highest) {
    const Val<bool> away = faces_away(bitcast<f32>(points(FacadeRows::kAspect, at)), branch, low, high);
    facade_body(at, f, {table}, points, away,
                {points(FacadeRows::kRow, at), points(FacadeRows::kCol, at), row, col, pitch}, highest);
  };
  if (plants)
    return kernel("urban.sun.facade.plants",
                  [body](At<1> at, Heights dsm, Heights near_dsm, Heights far, Heights canopy, Heights trunk,
                         Heights near_canopy, Table1 table, Points points, Int branch, Real low, Real high,
                         Int row, Int col, Int pitch, Real highest) {
                    body(at, {dsm, near_dsm, far, canopy, trunk, near_canopy}, table, points, branch, low,
                         high, row, col, pitch, highest);
                  });
  return kernel("urban.sun.facade", [body](At<1> at, Heights dsm, Heights near_dsm, Heights far, Table1 table,
                                           Points points, Int branch, Real low, Real high, Int row, Int col,
                                           Int pitch, Real highest) {
    body(at, {dsm, near_dsm, far, {}, {}, {}}, table, points, branch, low, high, row, col, pitch, highest);
  });
}

}  // namespace

const Kernel& facade_sun(bool plants) {
  static const Kernel all[] = {make_facade_sun(false), make_facade_sun(true)};
  return all[plants];
}
const Kernel& shadow(bool plants, bool heights) {
  static const Kernel all[2][2] = {{make_shadow(false, false), make_shadow(false, true)},
                                   {make_shadow(true, false), make_shadow(true, true)}};
  return all[plants][heights];
}
const Kernel& sky_states(bool plants) {
  static const Kernel with = make_sky_states(true), without = make_sky_states(false);
  return plants ? with : without;
}

}  // namespace lockstep::urban::kernels
