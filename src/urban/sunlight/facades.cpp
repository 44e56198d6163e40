#include "urban/sunlight/facades.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

using kernels::FacadeRows;

constexpr uint64_t kFeatureBytes = 400;

double area_of_band(const FacadeWall& wall, double pixel_size_m) {
  return wall.band_height_m() * wall.length_in_pixels() * pixel_size_m;
}

struct Towards {
  double x = 0, y = 0;  ///< east and north
};
Towards direction_of(const FacadeWall& wall) {
  const double angle = static_cast<double>(wall.azimuth_deg) * std::numbers::pi / 180;
  return {std::sin(angle), std::cos(angle)};
}

/// Along the face of the building: half a step from the pixel's centre against the direction that the wall faces.
std::vector<io::MapRing> line_of(const FacadeWall& wall, const io::RasterGrid& grid) {
  const auto& t = grid.transform;
  const Towards out = direction_of(wall);
  const double half = wall.length_in_pixels() / 2 * grid.pixel_size();
  const double x = t[0] + (wall.col + 0.5) * t[1] - out.x * half,
               y = t[3] + (wall.row + 0.5) * t[5] - out.y * half;
  return {{{x - out.y * half, y + out.x * half}, {x + out.y * half, y - out.x * half}}};
}

/// The columns that grow feature by feature.
class LayerBuilder {
 public:
  explicit LayerBuilder(const char* name, std::vector<std::string> columns) {
    layer_.name = name;
    layer_.kind = io::Feature::Kind::line;
    for (std::string& column : columns) layer_.columns.push_back({std::move(column), std::vector<double>()});
  }
  void add(std::vector<io::MapRing> shape, const std::vector<double>& values) {
    layer_.shapes.push_back(std::move(shape));
    for (size_t k = 0; k < values.size(); ++k)
      std::get<std::vector<double>>(layer_.columns[k].values).push_back(values[k]);
  }
  io::FeatureLayer take() { return std::move(layer_); }

 private:
  io::FeatureLayer layer_;
};

std::vector<std::string> with_grades(std::vector<std::string> columns, const SunRuleFacts* rule) {
  if (rule) columns.insert(columns.end(), {"grade", "grade_buildings"});
  return columns;
}

}  // namespace

double FacadeWall::length_in_pixels() const {
  const Towards out = direction_of(*this);
  return 1 / std::max(std::abs(out.x), std::abs(out.y));
}

uint64_t Facades::bytes(int64_t walls, int64_t bands) {
  return kFeatureBytes * static_cast<uint64_t>(walls + bands);
}

Facades find_facades(const City& city, const Walls& walls, double floor_height_m, uint64_t most_bytes) {
  Facades found;
  int64_t bands = 0;
  const std::span<const float> ground = city.dsm.as<float>(), heights = walls.height.pixels(),
                               aspects = walls.aspect.pixels();
  for (int64_t p = 0; p < city.pixels(); ++p) {
    const auto k = static_cast<size_t>(p);
    if (city.is_missing(p) || !(heights[k] > 0)) continue;
    FacadeWall wall{static_cast<int32_t>(p / city.cols),
                    static_cast<int32_t>(p % city.cols),
                    aspects[k],
                    ground[k],
                    heights[k],
                    1,
                    bands};
    wall.bands = std::max(1, static_cast<int32_t>(std::lround(double(heights[k]) / floor_height_m)));
    bands += wall.bands;
    found.walls.push_back(wall);
  }
  if (const uint64_t bytes = Facades::bytes(static_cast<int64_t>(found.walls.size()), bands);
      bytes > most_bytes)
    throw UnsupportedError(
        fmt::format("{} bands of facades take {:.1f} MiB while they are written, more than the {:.1f} MiB "
                    "that may be used",
                    bands, double(bytes) / 0x1p20, double(most_bytes) / 0x1p20),
        "facades", "a larger memory, higher bands or a part of the city");
  found.past_buildings.assign(static_cast<size_t>(bands), 0);
  found.past_plants = found.past_buildings;
  return found;
}

std::vector<std::vector<int64_t>> FacadePoints::parts_of(const Facades& facades, const Tile& tile,
                                                         int64_t most) {
  std::vector<std::vector<int64_t>> parts(1);
  for (const FacadeWall& wall : facades.walls) {
    if (wall.row < tile.row || wall.row >= tile.row + tile.rows || wall.col < tile.col ||
        wall.col >= tile.col + tile.cols)
      continue;
    for (int64_t band = wall.first_band; band < wall.first_band + wall.bands; ++band) {
      if (static_cast<int64_t>(parts.back().size()) == most) parts.emplace_back();
      parts.back().push_back(band);
    }
  }
  return parts;
}

void cast_facade_sun(const Device& device, const Stream& stream, const Scene& s, const Buffer& rays,
                     const Buffer& points, const SunSide& side) {
  const Kernel& kernel = kernels::facade_sun(s.plants);
  const Shape shape{points.shape()[1]};
  if (s.plants)
    device.launch_on(stream, kernel, shape, s.dsm, s.near_dsm, s.far, s.canopy, s.trunk, s.near_canopy, rays,
                     points, side.branch, side.low, side.high, s.row_offset(), s.col_offset(), s.shape.pitch,
                     s.highest);
  else
    device.launch_on(stream, kernel, shape, s.dsm, s.near_dsm, s.far, rays, points, side.branch, side.low,
                     side.high, s.row_offset(), s.col_offset(), s.shape.pitch, s.highest);
}

FacadePoints::FacadePoints(const Device& device, const Stream& stream, const Facades& facades,
                           const Tile& tile, const std::vector<int64_t>& bands)
    : device_(device), stream_(stream), bands_(bands) {
  const size_t n = bands.size();
  std::vector<int32_t> words(FacadeRows::kCount * n, 0);
  auto wall = facades.walls.begin();
  for (size_t k = 0; k < n; ++k) {
    while (wall->first_band + wall->bands <= bands[k]) ++wall;
    const double middle = (static_cast<double>(bands[k] - wall->first_band) + 0.5) * wall->band_height_m();
    words[FacadeRows::kRow * n + k] = wall->row - static_cast<int32_t>(tile.row);
    words[FacadeRows::kCol * n + k] = wall->col - static_cast<int32_t>(tile.col);
    words[FacadeRows::kHeight * n + k] =
        std::bit_cast<int32_t>(static_cast<float>(static_cast<double>(wall->base_m) + middle));
    words[FacadeRows::kAspect * n + k] = std::bit_cast<int32_t>(wall->azimuth_deg);
  }
  if (n > 0)
    points_ = upload_on(device, stream, words).reshape({FacadeRows::kCount, static_cast<int64_t>(n)});
}

void FacadePoints::clear_counts() const {
  if (!bands_.empty()) device_.clear(points_.rows(FacadeRows::kPastBuildings, 2), stream_);
}

void FacadePoints::shine(const Scene& scene, const Buffer& rays, const SunSide& side) const {
  if (!bands_.empty()) cast_facade_sun(device_, stream_, scene, rays, points_, side);
}

void FacadePoints::lower(Facades& facades) const {
  if (bands_.empty()) return;
  std::vector<int32_t> counts(2 * bands_.size());
  const Buffer rows = points_.rows(FacadeRows::kPastBuildings, 2);
  device_.read(rows, counts.data(), rows.bytes(), stream_);
  const auto lower_to = [](uint32_t& least, int32_t count) {
    least = std::min(least, static_cast<uint32_t>(count));
  };
  for (size_t k = 0; k < bands_.size(); ++k) {
    const auto band = static_cast<size_t>(bands_[k]);
    lower_to(facades.past_buildings[band], counts[k]);
    lower_to(facades.past_plants[band], counts[bands_.size() + k]);
  }
}

FacadeResult totals_of(const Facades& facades, double pixel_size_m, double hours_of_one) {
  FacadeResult totals;
  totals.walls = static_cast<int64_t>(facades.walls.size());
  totals.bands = facades.bands();
  double plants = 0, buildings = 0;
  for (const FacadeWall& wall : facades.walls) {
    const double area = area_of_band(wall, pixel_size_m);
    for (int64_t band = wall.first_band; band < wall.first_band + wall.bands; ++band) {
      totals.area_m2 += area;
      plants += area * facades.past_plants[static_cast<size_t>(band)];
      buildings += area * facades.past_buildings[static_cast<size_t>(band)];
    }
  }
  const double mean_of_one = totals.area_m2 > 0 ? hours_of_one / totals.area_m2 : 0;
  totals.hours = plants * mean_of_one;
  totals.hours_buildings = buildings * mean_of_one;
  return totals;
}

void take_facade_shares(const Facades& facades, const SunRuleFacts& rule, int minutes,
                        std::vector<SunGrade>& grades) {
  double all = 0;
  for (const FacadeWall& wall : facades.walls) {
    const double area = area_of_band(wall, 1);
    for (int64_t band = wall.first_band; band < wall.first_band + wall.bands; ++band) {
      const auto k = static_cast<size_t>(band);
      const auto grade = [&](uint32_t count) -> SunGrade& {
        return grades[static_cast<size_t>(rule.grade(int64_t{count} * minutes))];
      };
      all += area;
      grade(facades.past_plants[k]).facade_percent += area;
      grade(facades.past_buildings[k]).facade_percent_buildings += area;
    }
  }
  for (SunGrade& grade : grades) {
    grade.facade_percent *= 100 / all;
    grade.facade_percent_buildings *= 100 / all;
  }
}

std::vector<io::FeatureLayer> facade_layers(const Facades& facades, const City& city,
                                            const io::RasterGrid& grid, const SunRuleFacts* rule,
                                            int minutes) {
  LayerBuilder walls("facades", with_grades({"wall", "azimuth", "base", "height", "area", "hours",
                                             "hours_buildings", "least_hours", "least_hours_buildings"},
                                            rule)),
      bands("bands",
            with_grades({"wall", "band", "azimuth", "bottom", "top", "area", "hours", "hours_buildings"},
                        rule));
  const double hours_of_one = minutes / 60.0;
  for (size_t k = 0; k < facades.walls.size(); ++k) {
    const FacadeWall& wall = facades.walls[k];
    const double number = static_cast<double>(k + 1), azimuth = static_cast<double>(wall.azimuth_deg),
                 base = static_cast<double>(wall.base_m) - static_cast<double>(city.shift),
                 area = area_of_band(wall, city.pixel_size_m);
    const std::vector<io::MapRing> line = line_of(wall, grid);
    double sum[2] = {};
    uint32_t least[2] = {std::numeric_limits<uint32_t>::max(), std::numeric_limits<uint32_t>::max()};
    const auto add_grades = [&](std::vector<double>& values, const uint32_t(&counts)[2]) {
      for (const uint32_t count : counts)
        if (rule) values.push_back(rule->grade(int64_t{count} * minutes));
    };
    for (int32_t band = 0; band < wall.bands; ++band) {
      const auto at = static_cast<size_t>(wall.first_band + band);
      const uint32_t counts[2] = {facades.past_plants[at], facades.past_buildings[at]};
      std::vector<double> values = {number,
                                    double(band + 1),
                                    azimuth,
                                    base + band * wall.band_height_m(),
                                    base + (band + 1) * wall.band_height_m(),
                                    area};
      for (size_t n = 0; n < 2; ++n) {
        values.push_back(counts[n] * hours_of_one);
        sum[n] += counts[n] * hours_of_one;
        least[n] = std::min(least[n], counts[n]);
      }
      add_grades(values, counts);
      bands.add(line, values);
    }
    std::vector<double> values = {number, azimuth, base, static_cast<double>(wall.height_m),
                                  area * wall.bands};
    for (const double hours : sum) values.push_back(hours / wall.bands);
    for (const uint32_t count : least) values.push_back(count * hours_of_one);
    add_grades(values, least);
    walls.add(line, values);
  }
  return {walls.take(), bands.take()};
}

}  // namespace lockstep::urban
