// Kernels without rays: maxima for skipping, view factors by popcounts, walls.
#include <array>
#include <numbers>
#include <string>

#include "lockstep/urban.hpp"
#include "urban/city/prepare.hpp"
#include "urban/rays/facing.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/rays/ray_table.hpp"
#include "urban/sky/svf_weights.hpp"
#include "urban/walls/wall_templates.hpp"

namespace lockstep::urban::kernels {
namespace {

using Heights = Grid<f32, 1>;
using Plane = Grid<f32, 2>;
using Field = Out<f32, 2>;
using Int = Param<i32>;
using Real = Param<f32>;

/// Maximum of `count` values `stride` pixels apart along an axis, from the lane's pixel on.
Val<f32> max_of(const Plane& in, const At<2>& at, bool along_rows, int count, int stride) {
  Val<f32> best = in[at];
  for (int k = 1; k < count; ++k) best = max(best, in[along_rows ? at.x(k * stride) : at.y(k * stride)]);
  return best;
}

Val<i32> padded_index(const Val<i32>& row, const Val<i32>& col, const Val<i32>& pitch) {
  return (row + kPad) * pitch + col + kPad;
}

/// Counts of patches in the five sectors, from bits at even places.
std::array<Val<i32>, kSectors> sector_counts(const Val<u32>& bits, const Val<u32>& whole,
                                             const Val<u32>& east, const Val<u32>& south) {
  const auto count = [&](const Val<u32>& mask) { return cast<i32>(popcount(bits & mask)); };
  const Val<i32> all = count(whole), e = count(east), s = count(south);
  return {all, e, s, all - e, all - s};
}

void sky_view_body(const At<2>& at, const Grid<u32, 3>& words, const Grid<i32, 1>& table,
                   const Val<bool>* bare, const Out<f32, 3>& out, const Int& bands) {
  const int kinds = bare ? 3 : 1;
  std::vector<Var<u32>> sums;  // multiples of kWeightUnit
  for (int g = 0; g < kinds * kSectors; ++g) sums.emplace_back(0u);
  for_(0, bands, [&](const Val<i32>& band) {
    const auto head = table.wide<4>(band * 4);
    std::vector<Var<i32>> counts;
    for (int g = 0; g < kinds * kSectors; ++g) counts.emplace_back(0);
    for_(head[0], head[1], [&](const Val<i32>& segment) {
      const auto masks = table.wide<4>(bands * 4 + segment * 4);
      const Val<u32> word = words(masks[0], at);
      const Val<u32> high = word >> 1u;
      const Val<u32> bits[3] = {~high, ~word | high,
                                ~(word & high)};  // no building; no plant alone; no plant in front
      for (int kind = 0; kind < kinds; ++kind) {
        const auto sectors =
            sector_counts(bits[kind], bitcast<u32>(masks[1]), bitcast<u32>(masks[2]), bitcast<u32>(masks[3]));
        for (int s = 0; s < kSectors; ++s) counts[size_t(kind * kSectors + s)] += sectors[size_t(s)];
      }
    });
    for (int g = 0; g < kinds * kSectors; ++g) {
      const Val<u32> weight = bitcast<u32>(head[g % kSectors == 0 ? 2 : 3]);
      sums[size_t(g)] += bitcast<u32>(Val<i32>(counts[size_t(g)])) * weight;
    }
  });
  for (int g = 0; g < kinds * kSectors; ++g) {
    Val<u32> sum = sums[size_t(g)];
    const auto sector = Sector(g % kSectors);
    if (sector == Sector::south || sector == Sector::west) {
      const Val<u32> corrected = sum + weight_units(kSouthWestCorrection);
      sum = g < kSectors ? corrected : select(*bare, corrected, sum);
    }
    out(g, at) = min(cast<f32>(sum) * float(kWeightUnit), 1.0f);
  }
}

/// Sum without rounding error to speak of: the high part rounded, the low part what rounding lost.
struct ExactSum {
  Var<f32> high{0.0f}, low{0.0f};
  void add(const Val<f32>& value) {
    const Val<f32> before = high, sum = before + value, back = sum - before;
    low += (before - (sum - back)) + (value - back);
    high = sum;
  }
};

}  // namespace

const Kernel& max_along_rows() {
  static const Kernel k =
      kernel("urban.max8.rows", [](At<2> at, Plane in, Field out) { out[at] = max_of(in, at, true, 8, 1); });
  return k;
}
const Kernel& max_along_cols() {
  static const Kernel k =
      kernel("urban.max8.cols", [](At<2> at, Plane in, Field out) { out[at] = max_of(in, at, false, 8, 1); });
  return k;
}
const Kernel& far_max_along_rows() {
  static const Kernel k = kernel("urban.max32.rows", [](At<2> at, Plane a, Plane b, Field out) {
    out[at] = max(max_of(a, at, true, 4, 8), max_of(b, at, true, 4, 8));
  });
  return k;
}
const Kernel& far_max_along_cols() {
  static const Kernel k = kernel(
      "urban.max32.cols", [](At<2> at, Plane in, Field out) { out[at] = max_of(in, at, false, 4, 8); });
  return k;
}

const Kernel& sky_view(bool plants) {
  static const Kernel with =
      kernel("urban.svf.grids.plants", [](At<2> at, Grid<u32, 3> words, Grid<i32, 1> table, Heights trunk,
                                          Out<f32, 3> out, Int bands, Int row, Int col, Int pitch) {
        const Val<bool> bare = trunk[padded_index(at.y + row, at.x + col, pitch)] == 0.0f;
        sky_view_body(at, words, table, &bare, out, bands);
      });
  static const Kernel without =
      kernel("urban.svf.grids", [](At<2> at, Grid<u32, 3> words, Grid<i32, 1> table, Out<f32, 3> out,
                                   Int bands) { sky_view_body(at, words, table, nullptr, out, bands); });
  return plants ? with : without;
}

const Kernel& wall_height() {
  static const Kernel k = kernel("urban.walls.height", [](At<2> at, Heights dsm, Out<f32, 1> walls, Int pitch,
                                                          Real minimum, Int first_row, Int last_row,
                                                          Int first_col, Int last_col) {
    const Val<i32> row = at.y, col = at.x, p = padded_index(row, col, pitch);
    const Val<f32> own = dsm[p];
    const Val<f32> top = max(max(dsm[p - pitch], dsm[p + pitch]), max(dsm[p - 1], dsm[p + 1]));
    const Val<f32> height = top - own;
    const Val<bool> inner = (row >= first_row) & (row <= last_row) & (col >= first_col) & (col <= last_col);
    const Val<bool> wall = inner & (own > 0.5f * kNoHeight) & (height >= minimum);
    walls[p] = select(wall, height, Val<f32>(0.0f));
  });
  return k;
}

namespace {

/// The run of angles around the first one that covers most wall. `tail`: the first angle of the last such run.
class WallRun {
 public:
  explicit WallRun(bool middle) : middle_(middle) {}
  void add(const Val<i32>& h, const Val<i32>& covered) {
    if_(covered > Val<i32>(best_), [&] {
      best_ = covered;
      first_ = h;
      if (middle_) {
        last_ = h;
        tail_ = h;
      }
    });
    if (!middle_) return;
    if_(covered == Val<i32>(best_), [&] {
      if_(Val<i32>(last_) == h - 1, [&] { last_ = h; });
      if_(Val<i32>(before_) < Val<i32>(best_), [&] { tail_ = h; });
    });
    before_ = covered;
  }
  /// Its middle in degrees and in half degrees; `found` becomes 0 where all angles are equal: there is no line.
  std::pair<Val<i32>, Val<i32>> line(Var<i32>& found) const {
    const Val<i32> start = first_;
    Var<i32> angle(start), halves(start * 2);
    if (middle_) {
      found = select(Val<i32>(last_) - Val<i32>(first_) < kWallAngles - 1, Val<i32>(1), Val<i32>(0));
      // A run that ends at 179 continues at 0.
      const Val<bool> around_north = (Val<i32>(first_) == 0) & (Val<i32>(before_) == Val<i32>(best_)) &
                                     (Val<i32>(tail_) > Val<i32>(last_));
      const Val<i32> begin = select(around_north, Val<i32>(tail_), Val<i32>(first_));
      const Val<i32> end = select(around_north, Val<i32>(last_) + kWallAngles, Val<i32>(last_));
      halves = (begin + end) % (2 * kWallAngles);
      angle = Val<i32>(halves) / 2;
    }
    return {angle, halves};
  }

 private:
  const bool middle_;
  Var<i32> best_{0}, first_{0}, last_{0}, tail_{0}, before_{0};
};

/// Degrees clockwise from north of the way down a slope.
Val<f32> downhill(const Val<f32>& to_south, const Val<f32>& to_east) {
  const Val<f32> angle = -atan2(to_east, to_south);
  const Val<f32> positive = select(angle < 0.0f, angle + float(2 * std::numbers::pi), angle);
  return positive * float(180 / std::numbers::pi);
}

}  // namespace

Kernel wall_aspect(int side, WallTies ties) {
  const bool middle = ties == WallTies::middle;
  const std::string name = std::string("urban.walls.aspect.") + (middle ? "" : "first.");
  return kernel(name + std::to_string(side), [side, middle](At<2> at, Heights dsm, Heights walls,
                                                            Grid<i32, 1> table, Field out, Int row0, Int col0,
                                                            Int pitch, Int first_row, Int last_row,
                                                            Int first_col, Int last_col, Int north, Int south,
                                                            Int west, Int east, Real pixel_size) {
    const int words = template_words(side), half = side / 2;
    const Val<i32> row = at.y + row0, col = at.x + col0, p = padded_index(row, col, pitch);
    const auto height = [&](const Val<i32>& q) {
      const Val<f32> h = dsm[q];
      return select(h < 0.5f * kNoHeight, Val<f32>(0.0f), h);
    };
    Var<f32> aspect(0.0f);
    Var<i32> found(0);
    if_(walls[p] > 0.0f, [&] {
      const Val<bool> inner = (row >= first_row) & (row <= last_row) & (col >= first_col) & (col <= last_col);
      if_(inner, [&] {
        // The walls around the pixel as bits, as the templates have theirs.
        LocalArray<u32> around(words);
        for (int w = 0; w < words; ++w) around[w] = 0u;
        const Val<i32> corner = p - (pitch * half + half);
        for_(0, side * side, [&](const Val<i32>& k) {
          const Val<i32> q = corner + (k / side) * pitch + k % side;
          const Val<u32> bit = select(walls[q] > 0.0f, Val<u32>(1u), Val<u32>(0u)) << cast<u32>(k & 31);
          around[k >> 5] = Val<u32>(around[k >> 5]) | bit;
        });
        WallRun run(middle);
        for_(0, kWallAngles, [&](const Val<i32>& h) {
          Var<i32> covered(0);
          for_(0, words, [&](const Val<i32>& w) {
            covered += cast<i32>(popcount(Val<u32>(around[w]) & bitcast<u32>(table[h * (3 * words) + w])));
          });
          run.add(h, covered);
        });
        const auto [angle, halves] = run.line(found);
        const Val<i32> masks = angle * (3 * words) + words;
        ExactSum one, two;
        for_(0, side * side, [&](const Val<i32>& k) {
          const Val<f32> h = height(corner + (k / side) * pitch + k % side);
          const auto on = [&](int which) {
            const Val<u32> word = bitcast<u32>(table[masks + (which * words + (k >> 5))]);
            return ((word >> cast<u32>(k & 31)) & 1u) != 0u;
          };
          one.add(select(on(0), h, Val<f32>(0.0f)));
          two.add(select(on(1), h, Val<f32>(0.0f)));
        });
        // Compare high + low without losing either.
        const Val<f32> apart =
            (Val<f32>(one.high) - Val<f32>(two.high)) + (Val<f32>(one.low) - Val<f32>(two.low));
        const Val<i32> turned = 540 - halves - select(apart > 0.0f, Val<i32>(360), Val<i32>(0));
        aspect = cast<f32>(select(turned < 0, turned + 720, turned)) * 0.5f;
      });
      if_(middle ? Val<i32>(found) == 0 : Val<f32>(aspect) == 0.0f, [&] {
        // Slope of the ground, one-sided at the raster's border.
        const auto rise = [&](const Val<i32>& at_axis, const Int& low, const Int& high,
                              const Val<i32>& stride) {
          const Val<bool> begin = at_axis <= low, end = at_axis >= high;
          const Val<f32> ahead = height(select(end, p, p + stride)),
                         behind = height(select(begin, p, p - stride));
          const Val<f32> steps = select(begin | end, Val<f32>(1.0f), Val<f32>(2.0f));
          return select(begin & end, Val<f32>(0.0f), (ahead - behind) / (pixel_size * steps));
        };
        const Val<f32> to_south = rise(row, north, south, pitch),
                       to_east = rise(col, west, east, Val<i32>(1));
        aspect = downhill(to_south, to_east);
      });
    });
    out[at] = aspect;
  });
}

namespace {

Kernel make_wall_shade(bool plants) {
  return kernel(plants ? "urban.walls.shade.plants" : "urban.walls.shade",
                [plants](At<2> at, Grid<f32, 3> planes, Heights dsm, Plane walls, Plane aspect,
                         Out<f32, 3> out, Int branch, Real low, Real high, Int row, Int col, Int pitch) {
                  const ShadowPlanes which{plants, true};
                  const Val<f32> shade = planes(which.shade(), at);
                  const Val<f32> depth = plants ? planes(which.depth(), at) : Val<f32>(0.0f);
                  const Val<f32> ground = dsm[padded_index(at.y + row, at.x + col, pitch)];
                  const Val<f32> wall = walls[at];
                  const Val<bool> away = (wall > 0.0f) & faces_away(aspect[at], branch, low, high);
                  const Val<f32> lit =
                      select(away, Val<f32>(0.0f), max(Val<f32>(0.0f), wall - (shade - ground)));
                  const Val<f32> dark = wall - lit;
                  const Val<f32> leaves = min(max(depth - dark, 0.0f), wall);
                  out(0, at) = max(lit - leaves, 0.0f);
                  out(1, at) = dark;
                });
}

}  // namespace

const Kernel& wall_shade(bool plants) {
  static const Kernel with = make_wall_shade(true), without = make_wall_shade(false);
  return plants ? with : without;
}

}  // namespace lockstep::urban::kernels
