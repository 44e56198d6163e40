#include "urban/plant/sites.hpp"

#include <algorithm>

#include "urban/radiation/step/scalars.hpp"
#include "urban/sky/sky_plan.hpp"

namespace lockstep::urban {
namespace {

PixelRect clipped(const City& city, int64_t row, int64_t col, int64_t end_row, int64_t end_col) {
  row = std::max<int64_t>(row, 0);
  col = std::max<int64_t>(col, 0);
  return {row, col, std::min(end_row, city.rows) - row, std::min(end_col, city.cols) - col};
}

}  // namespace

PixelRect intersection(const PixelRect& a, const PixelRect& b) {
  const int64_t row = std::max(a.row, b.row), col = std::max(a.col, b.col);
  return {row, col, std::min(a.row + a.rows, b.row + b.rows) - row,
          std::min(a.col + a.cols, b.col + b.cols) - col};
}

PixelRect hull(const PixelRect& a, const PixelRect& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  const int64_t row = std::min(a.row, b.row), col = std::min(a.col, b.col);
  return {row, col, std::max(a.row + a.rows, b.row + b.rows) - row,
          std::max(a.col + a.cols, b.col + b.cols) - col};
}

std::vector<PlantSite> find_sites(const SeriesInputs& inputs, const std::vector<CrownPixel>& crown,
                                  int64_t spacing, std::span<const uint8_t> allowed,
                                  PlantRefusals& refusals) {
  const City& city = inputs.city;
  const auto canopy = city.canopy.as<float>();
  std::vector<PlantSite> sites;
  for (int64_t row = spacing / 2; row < city.rows; row += spacing)
    for (int64_t col = spacing / 2; col < city.cols; col += spacing) {
      ++refusals.positions;
      const auto here = static_cast<size_t>(row * city.cols + col);
      if (!allowed.empty() && !allowed[here]) {
        ++refusals.not_allowed;
        continue;
      }
      if (!inputs.ground[here]) {
        ++refusals.no_ground;
        continue;
      }
      bool inside = true, room = true;
      for (const CrownPixel& c : crown) {
        const int64_t r = row + c.row, k = col + c.col;
        inside = inside && r >= 0 && r < city.rows && k >= 0 && k < city.cols;
        if (!inside) break;
        const auto p = static_cast<size_t>(r * city.cols + k);
        room = room && inputs.ground[p] && (canopy.empty() || canopy[p] == 0);
      }
      if (inside && room)
        sites.push_back({row, col});
      else
        ++(inside ? refusals.no_room : refusals.edge);
    }
  return sites;
}

TreeReaches::TreeReaches(const SeriesInputs& inputs, const std::vector<CrownPixel>& crown,
                         CanopyHeights convention, double least_altitude_deg)
    : city_(inputs.city),
      crown_(crown),
      heights_{convention, inputs.city.shift},
      margin_(ground_reach(inputs.radiation, inputs.city.pixel_size_m).far + 2) {
  std::vector<Ray> rays = plan_sky(city_, inputs.radiation.view).rays;
  for (const auto* steps : {&inputs.warm_up, &inputs.steps})
    for (const WeatherStep& step : *steps)
      for (const StepForcing& f : step.parts())
        if (f.day())
          rays.push_back(
              plan_ray(city_, {f.sun_azimuth_deg, f.sun_altitude_deg}, inputs.radiation.view.rays));
  for (const Ray& ray : rays) {
    if (ray.direction.altitude_deg < least_altitude_deg) continue;
    std::vector<StepOfRay>& own = rays_.emplace_back();
    float before = 0;
    for (const RayStep& step : ray.steps) {
      const auto rise = static_cast<float>(step.rise_m);
      own.push_back({step.drow, step.dcol, rise, before});
      before = rise;
    }
  }
}

struct TreeReaches::PixelMask {
  int64_t cols, first_row, last_row = -1, first_col, last_col = -1;
  std::vector<uint8_t> bits;
  PixelMask(int64_t rows, int64_t c)
      : cols(c), first_row(rows), first_col(c), bits(static_cast<size_t>(rows * c)) {}
  bool has(int64_t row, int64_t col) const { return bits[static_cast<size_t>(row * cols + col)] != 0; }
  void set(int64_t row, int64_t col) {
    bits[static_cast<size_t>(row * cols + col)] = 1;
    first_row = std::min(first_row, row);
    last_row = std::max(last_row, row);
    first_col = std::min(first_col, col);
    last_col = std::max(last_col, col);
  }
};

/// Marks the pixels from which a ray meets the crown's pixel first.
void TreeReaches::mark(const PlantSite& site, const CrownPixel& c, PixelMask& seen) const {
  const auto dsm = city_.dsm.as<float>();
  const int64_t row = site.row + c.row, col = site.col + c.col;
  const float top = heights_.in_city(c.top_m, dsm[static_cast<size_t>(row * city_.cols + col)]);
  seen.set(row, col);
  for (const std::vector<StepOfRay>& ray : rays_)
    for (size_t k = 0; k < ray.size() && !(top - ray[k].before <= city_.lowest); ++k) {
      const int64_t from_row = row - ray[k].row, from_col = col - ray[k].col;
      if (from_row < 0 || from_row >= city_.rows || from_col < 0 || from_col >= city_.cols) break;
      const int64_t from = from_row * city_.cols + from_col;
      const float height = dsm[static_cast<size_t>(from)];
      if (height == kNoHeight || !(top - ray[k].before > height) || seen.has(from_row, from_col)) continue;
      bool open = true;
      for (size_t i = 0; i <= k && open; ++i)
        open =
            !(dsm[static_cast<size_t>(from + ray[i].row * city_.cols + ray[i].col)] - ray[i].rise > height);
      if (open) seen.set(from_row, from_col);
    }
}

TreeReach TreeReaches::reach_of(const PlantSite& site) const {
  PixelMask seen(city_.rows, city_.cols);
  for (const CrownPixel& c : crown_) mark(site, c, seen);
  TreeReach reach;
  reach.box = clipped(city_, seen.first_row - margin_, seen.first_col - margin_, seen.last_row + margin_ + 1,
                      seen.last_col + margin_ + 1);
  // Squares around the seen pixels, by their sums along rows and columns.
  const int64_t rows = reach.box.rows, cols = reach.box.cols;
  std::vector<uint8_t> along(static_cast<size_t>(rows * cols));
  reach.changed.resize(along.size());
  const auto spread = [&](int64_t count, const auto& is_set, const auto& set) {
    int64_t last = -1;  // set until then, from the last set one on
    for (int64_t k = 0; k < count; ++k) {
      if (!is_set(k)) continue;
      for (int64_t at = std::max(last + 1, k - margin_); at <= std::min(count - 1, k + margin_); ++at)
        set(at);
      last = std::min(count - 1, k + margin_);
    }
  };
  for (int64_t r = 0; r < rows; ++r)
    spread(
        cols, [&](int64_t c) { return seen.has(reach.box.row + r, reach.box.col + c); },
        [&](int64_t c) { along[static_cast<size_t>(r * cols + c)] = 1; });
  for (int64_t c = 0; c < cols; ++c)
    spread(
        rows, [&](int64_t r) { return along[static_cast<size_t>(r * cols + c)] != 0; },
        [&](int64_t r) { reach.changed[static_cast<size_t>(r * cols + c)] = 1; });
  return reach;
}

PixelRect common_box(const TreeReach& a, const TreeReach& b) {
  const PixelRect shared = intersection(a.box, b.box);
  const auto has = [](const TreeReach& reach, int64_t row, int64_t col) {
    return reach.changed[static_cast<size_t>((row - reach.box.row) * reach.box.cols + col - reach.box.col)] !=
           0;
  };
  PixelRect box;
  for (int64_t row = shared.row; row < shared.row + shared.rows; ++row)
    for (int64_t col = shared.col; col < shared.col + shared.cols; ++col)
      if (has(a, row, col) && has(b, row, col)) box = hull(box, {row, col, 1, 1});
  return box;
}

}  // namespace lockstep::urban
