#include "urban/sunlight/sun_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "core/hash.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/sunlight/sun_kernels.hpp"

namespace lockstep::urban {
namespace {

constexpr char kSunlightStage[] = "urban.sun";
constexpr int kHourPlanes = 2;  // past plants too, past buildings alone
constexpr uint32_t kUncounted = std::numeric_limits<uint32_t>::max();

/// Positions that the pixels of a tile see, of the sum with the fewest.
class GroundCounts {
 public:
  GroundCounts(const Device& device, const Stream& stream, const Scene& scene, const Tile& tile)
      : device_(device),
        stream_(stream),
        scene_(scene),
        counts_(allocate_core<u32>(device, scene.plants ? 2 : 1, tile)),
        seen_(static_cast<size_t>(tile.core_pixels())) {
    for (std::vector<uint32_t>& plane : least_) plane.assign(seen_.size(), kUncounted);
  }
  void clear() const { device_.clear(counts_, stream_); }
  void add(const ShadowBuffers& shadow) const {
    cast_shadow(device_, stream_, scene_, shadow);
    device_.launch_on(stream_, kernels::count_sun(scene_.plants), scene_.core(), shadow.planes, counts_);
  }
  void lower() {
    for (int plane = 0; plane < (scene_.plants ? 2 : 1); ++plane) {
      const Buffer one = counts_.rows(plane, 1);
      device_.read(one, seen_.data(), one.bytes(), stream_);
      std::vector<uint32_t>& least = least_[plane];
      for (size_t p = 0; p < seen_.size(); ++p) least[p] = std::min(least[p], seen_[p]);
    }
  }
  const std::vector<uint32_t>& past_buildings() const { return least_[kernels::kPastBuildings]; }
  const std::vector<uint32_t>& past_plants() const {
    return least_[scene_.plants ? kernels::kPastPlants : kernels::kPastBuildings];
  }

 private:
  const Device& device_;
  const Stream& stream_;
  const Scene& scene_;
  const Buffer counts_;
  std::vector<uint32_t> seen_, least_[2];
};

void compute_sun_tile(const Device& device, const Stream& stream, const City& city, const Tile& tile,
                      const SunJob& task, const TileResult& result, const Advance& advance) {
  const Scene scene = upload_scene(device, stream, city, tile);
  build_maxima(device, stream, scene);
  GroundCounts ground(device, stream, scene, tile);
  static const Facades no_facades;
  const Facades& facades = task.facades ? *task.facades : no_facades;
  const auto parts = FacadePoints::parts_of(facades, tile, tile.core_pixels());
  ShadowBuffers shadow{{}, allocate_shadow_planes(device, scene, false), false};
  for (size_t part = 0; part < parts.size(); ++part) {
    for (const int64_t band : parts[part])
      task.facades->past_buildings[size_t(band)] = task.facades->past_plants[size_t(band)] = kUncounted;
    const FacadePoints points(device, stream, facades, tile, parts[part]);
    for (const std::vector<Direction>& sum : task.sums) {
      if (part == 0) ground.clear();
      points.clear_counts();
      for (const Direction& sun : sum) {
        aim_shadow(device, stream, plan_ray(city, sun, task.rays), city, scene, shadow);
        if (part == 0) ground.add(shadow);
        points.shine(scene, shadow.rays, sun_side(sun.azimuth_deg));
        if (part == 0) advance(1);
      }
      if (part == 0) ground.lower();
      if (task.facades) points.lower(*task.facades);
    }
  }
  const auto take = [&](const std::vector<uint32_t>& counts, size_t plane) {
    for (size_t p = 0; p < counts.size(); ++p) {
      result.plane(plane)[p] = static_cast<float>(counts[p] * task.hours_of_one());
      if (task.rule)
        result.plane(kHourPlanes + plane)[p] =
            static_cast<float>(task.rule->grade(int64_t{counts[p]} * task.minutes));
    }
  };
  take(ground.past_plants(), 0);
  take(ground.past_buildings(), 1);
}

/// Of all directions, and of the sum that each belongs to.
std::string hash_of_suns(const std::vector<std::vector<Direction>>& sums) {
  std::vector<double> values;
  for (const auto& sum : sums) {
    values.push_back(static_cast<double>(sum.size()));
    for (const Direction& sun : sum) values.insert(values.end(), {sun.azimuth_deg, sun.altitude_deg});
  }
  return to_hex(hash128(std::as_bytes(std::span(values))));
}

}  // namespace

size_t SunJob::positions() const {
  size_t all = 0;
  for (const auto& sum : sums) all += sum.size();
  return all;
}
size_t SunJob::least_positions() const {
  size_t least = sums.front().size();
  for (const auto& sum : sums) least = std::min(least, sum.size());
  return least;
}

TileReport stream_sunlight(Context& context, const City& city, const SunJob& task, const TileOptions& tiles,
                           const TileSink& sink) {
  TileJob job;
  job.stage = kSunlightStage;
  job.field_prefix = "sun_";
  for (const auto& sum : task.sums)
    for (const Direction& sun : sum) job.reach.include(reach_of(plan_ray(city, sun, task.rays).steps));
  job.planes = kHourPlanes * (task.rule ? 2 : 1);
  job.parts = std::max(1, static_cast<int>(task.positions()));
  const kernels::ShadowPlanes planes{city.has_vegetation(), false};
  job.cost.window_bytes = scene_bytes(city.has_vegetation());
  job.cost.core_bytes =
      4 * static_cast<uint64_t>(planes.count() + kHourPlanes) + (task.facades ? kFacadePointBytes : 0);
  job.cost.widest_core_bytes =
      std::max(4 * static_cast<uint64_t>(planes.count()), task.facades ? kFacadePointBytes : 0);
  job.cost.host_core_bytes = 4 * static_cast<uint64_t>(job.planes + 3);
  job.options =
      fmt::format("{} suns {} of {} min, reach {} m, rule {}", task.positions(), hash_of_suns(task.sums),
                  task.minutes, task.rays.max_reach_m, task.rule ? task.rule->source : "none");
  job.compute = [&](const Device& device, const Stream& stream, const City& part, const Tile& tile,
                    const TileResult& result, const Advance& advance) {
    compute_sun_tile(device, stream, part, tile, task, result, advance);
  };
  TileOptions kept = tiles;
  if (task.facades) kept.resume_folder.clear();  // stored tiles do not hold the counts of facades
  return run_tiles(context, city, job, kept, sink);
}

}  // namespace lockstep::urban
