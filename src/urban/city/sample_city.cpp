#include "urban/city/sample_city.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>
#include <utility>

#include "core/numbers/split_mix.hpp"
#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() { return split_mix64(std::exchange(state_, state_ + kSplitMixStep)); }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }
  bool chance(double share) { return uniform(0, 1) < share; }

 private:
  uint64_t state_;
};

// City coordinates: metres along the streets, which are turned against north.
struct Point {
  double u = 0, v = 0;
};
struct Rectangle {
  double u0 = 0, v0 = 0, u1 = 0, v1 = 0;
  double width() const { return u1 - u0; }
  double height() const { return v1 - v0; }
  Point centre() const { return {(u0 + u1) / 2, (v0 + v1) / 2}; }
  bool contains(Point p) const { return p.u >= u0 && p.u < u1 && p.v >= v0 && p.v < v1; }
  /// Distance from a point inside to the nearest edge.
  double depth(Point p) const { return std::min({p.u - u0, u1 - p.u, p.v - v0, v1 - p.v}); }
  Rectangle inset(double by) const { return {u0 + by, v0 + by, u1 - by, v1 - by}; }
};

enum class BlockUse { courtyard, slabs, park, tower };

struct Block {
  Rectangle area;
  BlockUse use = BlockUse::courtyard;
  double wing_depth = 12;       // of the wings around a courtyard
  double slope = 0.7;           // of the roofs
  bool yard_house = false;      // a low house in the middle of the courtyard
  std::vector<double> heights;  // eaves of the houses, one after the other around the block
};

struct Tree {
  Point at;
  double crown_radius, height, trunk_height;
};

constexpr double kStreetAngle = 14 * std::numbers::pi / 180;
constexpr double kSmallestBlock = 50, kHouseLength = 22;

class CityPlan {
 public:
  CityPlan(double width, double height, uint64_t seed) : random_(seed * 0x2545f4914f6cdd1du + 11) {
    // Streets are turned, so the plan must cover the turned rectangle.
    const double reach = std::hypot(width, height) / 2 + 40;
    phase_ = random_.uniform(0, 6);
    relief_ = random_.uniform(3, 7);
    divide({-reach, -reach, reach, reach}, 0);
    if (!blocks_.empty()) make_tower();
    for (Block& block : blocks_) furnish(block);
  }

  double ground(Point p) const {
    return 12 +
           relief_ * (std::sin(p.u / 190 + phase_) + 0.7 * std::cos(p.v / 140 - phase_) +
                      0.35 * std::sin((p.u - p.v) / 83)) +
           0.004 * (p.u + p.v);
  }

  /// Height of a building above its ground, 0 between buildings.
  double building(Point p) const {
    const Part* part = &parts_.front();
    while (part->first >= 0) {
      const double at = part->across ? p.u : p.v;
      if (at >= part->street_begin && at < part->street_end) return 0;
      part = &parts_[static_cast<size_t>(at < part->street_begin ? part->first : part->second)];
    }
    if (part->block < 0) return 0;
    const Block& block = blocks_[static_cast<size_t>(part->block)];
    return block.area.contains(p) ? building_in(block, p) : 0;
  }
  const std::vector<Tree>& trees() const { return trees_; }

 private:
  /// A node of the plan: two parts with a street between them, or one block, or neither.
  struct Part {
    bool across = false;
    double street_begin = 0, street_end = 0;
    int64_t first = -1, second = -1, block = -1;
  };

  /// Returns the number of the part.
  int64_t divide(const Rectangle& area, int level) {
    const size_t number = parts_.size();
    parts_.emplace_back();
    const bool across = area.width() > area.height();
    const double length = across ? area.width() : area.height();
    if (length < 2 * kSmallestBlock || (level > 3 && length < 130 && random_.chance(0.75))) {
      if (area.width() < 20 || area.height() < 20) return static_cast<int64_t>(number);
      parts_[number].block = static_cast<int64_t>(blocks_.size());
      Block block;
      block.area = area;
      blocks_.push_back(block);
      return static_cast<int64_t>(number);
    }
    // The first cuts are avenues with trees on both sides.
    const double street = level < 3 ? random_.uniform(18, 24) : random_.uniform(9, 13);
    const double cut = (across ? area.u0 : area.v0) + length * random_.uniform(0.38, 0.62);
    Rectangle first = area, second = area;
    (across ? first.u1 : first.v1) = cut - street / 2;
    (across ? second.u0 : second.v0) = cut + street / 2;
    if (level < 3) plant_avenue(area, across, cut, street);
    Part part;
    part.across = across;
    part.street_begin = cut - street / 2;
    part.street_end = cut + street / 2;
    part.first = divide(first, level + 1);
    part.second = divide(second, level + 1);
    parts_[number] = part;
    return static_cast<int64_t>(number);
  }

  void plant_avenue(const Rectangle& area, bool across, double cut, double street) {
    const double begin = across ? area.v0 : area.u0, end = across ? area.v1 : area.u1;
    for (const double side : {-1.0, 1.0}) {
      for (double along = begin + 6; along < end - 4; along += random_.uniform(8, 10.5)) {
        if (random_.chance(0.08)) continue;  // A tree is missing here and there.
        const double off = cut + side * (street / 2 - 4.5);
        plant(across ? Point{off, along} : Point{along, off}, random_.uniform(2.4, 3.6),
              random_.uniform(8, 12));
      }
    }
  }

  void plant(Point at, double crown_radius, double height) {
    trees_.push_back({at, crown_radius, height, height * random_.uniform(0.2, 0.3)});
  }

  void make_tower() {
    const auto distance = [](const Block& b) {
      return std::hypot(b.area.centre().u - 30, b.area.centre().v + 20);
    };
    auto nearest = std::min_element(blocks_.begin(), blocks_.end(), [&](const Block& a, const Block& b) {
      return distance(a) < distance(b);
    });
    nearest->use = BlockUse::tower;
  }

  void furnish(Block& block) {
    if (block.use != BlockUse::tower) {
      const double draw = random_.uniform(0, 1);
      block.use = draw < 0.08 ? BlockUse::park : draw < 0.22 ? BlockUse::slabs : BlockUse::courtyard;
    }
    const Rectangle& area = block.area;
    block.wing_depth = random_.uniform(10.5, 13.5);
    block.slope = random_.uniform(0.5, 0.95);
    block.yard_house = random_.chance(0.4);
    const double base = random_.uniform(11, 19);
    for (int k = 0; k < 64; ++k) block.heights.push_back(base + random_.uniform(-2.5, 3.0));
    const auto scatter = [&](const Rectangle& within, double area_per_tree, double low, double high) {
      const int count =
          static_cast<int>(std::max(0.0, within.width()) * std::max(0.0, within.height()) / area_per_tree);
      for (int k = 0; k < count; ++k) {
        const Point at = {random_.uniform(within.u0, within.u1), random_.uniform(within.v0, within.v1)};
        plant(at, random_.uniform(2.0, 4.5), random_.uniform(low, high));
      }
    };
    switch (block.use) {
      case BlockUse::park: scatter(area.inset(3), 95, 7, 17); break;
      case BlockUse::courtyard: scatter(area.inset(block.wing_depth + 4), 150, 5, 10); break;
      case BlockUse::slabs: scatter(area.inset(2), 240, 6, 12); break;
      case BlockUse::tower:
        for (double u = area.u0 + 4; u < area.u1 - 3; u += 8) {
          plant({u, area.v0 + 4}, 2.2, 7);
          plant({u, area.v1 - 4}, 2.2, 7);
        }
        break;
    }
  }

  double building_in(const Block& block, Point p) const {
    const Rectangle& area = block.area;
    switch (block.use) {
      case BlockUse::park: return 0;
      case BlockUse::tower: {
        // A low plinth, a shaft and a set-back top.
        const Point c = area.centre();
        const double side = std::max(std::abs(p.u - c.u), std::abs(p.v - c.v));
        const double room = std::min(area.width(), area.height()) / 2;
        if (side < std::min(7.0, room * 0.3)) return 74;
        if (side < std::min(11.0, room * 0.5)) return 62;
        if (side < room * 0.75) return 8;
        return 0;
      }
      case BlockUse::slabs: {
        // Parallel rows with flat roofs along the longer side.
        const bool across = area.width() < area.height();
        const double along = across ? p.v - area.v0 : p.u - area.u0,
                     length = across ? area.height() : area.width();
        const double offset = across ? p.u - area.u0 : p.v - area.v0,
                     room = across ? area.width() : area.height();
        const int rows = std::max(1, static_cast<int>(room / 27));
        const double pitch = room / rows;
        const double inside = std::fmod(offset, pitch) - (pitch - 12) / 2;
        if (inside < 0 || inside > 12 || along < 6 || along > length - 6) return 0;
        return block.heights[static_cast<size_t>(offset / pitch) % block.heights.size()] + 4;
      }
      case BlockUse::courtyard: break;
    }
    const double depth = area.depth(p);
    if (depth < 0 || depth > block.wing_depth) return courtyard_house(block, p);
    if (is_gateway(block, p)) return 0;
    // Houses follow each other around the block; a pitched roof rises from both eaves to the ridge.
    const double around = perimeter_position(area, p);
    const double eaves = block.heights[static_cast<size_t>(around / kHouseLength) % block.heights.size()];
    return eaves + block.slope * std::min(depth, block.wing_depth - depth);
  }

  // A low flat-roofed house in the middle of larger courtyards.
  static double courtyard_house(const Block& block, Point p) {
    const Rectangle yard = block.area.inset(block.wing_depth);
    if (!block.yard_house || yard.width() < 34 || yard.height() < 34) return 0;
    const Point c = yard.centre();
    return std::abs(p.u - c.u) < yard.width() * 0.17 && std::abs(p.v - c.v) < yard.height() * 0.12 ? 5.0 : 0;
  }
  static bool is_gateway(const Block& block, Point p) {
    const Point c = block.area.centre();
    return p.v < c.v && std::abs(p.u - c.u - block.area.width() * 0.21) < 2.2;
  }
  static double perimeter_position(const Rectangle& area, Point p) {
    const double depth = area.depth(p);
    if (depth == p.v - area.v0) return p.u - area.u0;
    if (depth == area.u1 - p.u) return area.width() + p.v - area.v0;
    if (depth == area.v1 - p.v) return area.width() + area.height() + area.u1 - p.u;
    return 2 * area.width() + area.height() + area.v1 - p.v;
  }

  Random random_;
  double phase_ = 0, relief_ = 5;
  std::vector<Part> parts_;
  std::vector<Block> blocks_;
  std::vector<Tree> trees_;
};

}  // namespace

CityInput make_sample_city(const SampleCityOptions& options,
                           const std::function<void(int64_t done, int64_t total)>& on_progress) {
  if (options.rows < 1 || options.cols < 1) {
    throw InputError(fmt::format("{} x {} pixels", options.rows, options.cols), "sample city",
                     "at least one row and column");
  }
  if (!(options.pixel_size_m >= 0.05 && options.pixel_size_m <= 50)) {
    throw InputError(fmt::format("a pixel size of {} m", options.pixel_size_m), "sample city",
                     "0.05 to 50 m");
  }
  const double width = static_cast<double>(options.cols) * options.pixel_size_m;
  const double height = static_cast<double>(options.rows) * options.pixel_size_m;
  const CityPlan city(width, height, options.seed);
  const double cosine = std::cos(kStreetAngle), sine = std::sin(kStreetAngle);
  const auto point_of = [&](int64_t row, int64_t col) {
    const double east = (static_cast<double>(col) + 0.5) * options.pixel_size_m - width / 2;
    const double north = height / 2 - (static_cast<double>(row) + 0.5) * options.pixel_size_m;
    return Point{cosine * east + sine * north, cosine * north - sine * east};
  };

  CityInput input;
  input.pixel_size_m = options.pixel_size_m;
  input.dsm = Raster(options.rows, options.cols);
  input.dem = input.cdsm = input.tdsm = input.dsm;
  const std::span<float> dsm = input.dsm.pixels(), dem = input.dem.pixels(), cdsm = input.cdsm.pixels(),
                         tdsm = input.tdsm.pixels();
  const auto index = [&](int64_t row, int64_t col) { return static_cast<size_t>(row * options.cols + col); };
  std::vector<uint8_t> built(dsm.size());
  std::mutex counting;
  int64_t done = 0;
  tbb::parallel_for(int64_t{0}, options.rows, [&](int64_t row) {
    for (int64_t col = 0; col < options.cols; ++col) {
      const Point p = point_of(row, col);
      const double ground = city.ground(p), building = city.building(p);
      // Heights are whole centimetres, as survey products have them.
      const auto centimetres = [](double h) { return static_cast<float>(std::round(h * 100) / 100); };
      dem[index(row, col)] = centimetres(ground);
      dsm[index(row, col)] = centimetres(ground + building);
      built[index(row, col)] = building > 0;
    }
    const std::lock_guard lock(counting);
    if (on_progress) on_progress(++done, options.rows);
  });
  for (const Tree& tree : city.trees()) {
    const double east = cosine * tree.at.u - sine * tree.at.v, north = sine * tree.at.u + cosine * tree.at.v;
    const double col_at = (east + width / 2) / options.pixel_size_m,
                 row_at = (height / 2 - north) / options.pixel_size_m;
    const double reach = tree.crown_radius / options.pixel_size_m;
    const auto from = [](double x) { return std::max<int64_t>(0, static_cast<int64_t>(std::floor(x))); };
    for (int64_t row = from(row_at - reach); row < std::min(options.rows, from(row_at + reach) + 1); ++row) {
      for (int64_t col = from(col_at - reach); col < std::min(options.cols, from(col_at + reach) + 1);
           ++col) {
        const Point p = point_of(row, col);
        const double share = std::hypot(p.u - tree.at.u, p.v - tree.at.v) / tree.crown_radius;
        if (share > 1 || built[index(row, col)]) continue;
        // The crown is the upper half of an ellipsoid above the trunk zone.
        const double top = tree.trunk_height +
                           (tree.height - tree.trunk_height) * (0.45 + 0.55 * std::sqrt(1 - share * share));
        float& canopy = cdsm[index(row, col)];
        if (top <= static_cast<double>(canopy)) continue;
        canopy = static_cast<float>(std::round(top * 100) / 100);
        tdsm[index(row, col)] = static_cast<float>(std::round(tree.trunk_height * 100) / 100);
      }
    }
  }
  return input;
}

}  // namespace lockstep::urban
