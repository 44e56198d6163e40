// Heights and directions of walls: stage "urban.walls".
#include "urban/walls/walls.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "lockstep/error.hpp"
#include "lockstep/urban.hpp"
#include "urban/city/scene.hpp"
#include "urban/rays/kernels.hpp"
#include "urban/tiles/tile_runner.hpp"

namespace lockstep::urban {
namespace {

/// First and last row (or column) of the window, as kernels take them, for those of the raster.
struct Range {
  int64_t first, last;
};
Range in_window(int64_t first, int64_t last, int64_t window_begin) {
  return {first - window_begin, last - window_begin};
}

}  // namespace

const Kernel& wall_aspect_kernel(int side) {
  static std::mutex mutex;
  static std::map<int, Kernel> kernels;
  const std::lock_guard lock(mutex);
  auto found = kernels.find(side);
  if (found == kernels.end()) found = kernels.emplace(side, kernels::wall_aspect(side)).first;
  return found->second;
}

std::vector<int32_t> pack_templates(const WallTemplates& templates) {
  const int words = kernels::template_words(templates.side);
  const size_t area = static_cast<size_t>(templates.side * templates.side);
  std::vector<uint32_t> packed(static_cast<size_t>(kWallAngles * 3 * words), 0u);
  for (int h = 0; h < kWallAngles; ++h) {
    uint32_t* const row = &packed[static_cast<size_t>(h * 3 * words)];
    const auto set = [&](int which, size_t k) {
      row[static_cast<size_t>(which * words) + k / 32] |= 1u << (k % 32);
    };
    for (size_t k = 0; k < area; ++k) {
      if (templates.lines[static_cast<size_t>(h) * area + k]) set(0, k);
      const uint8_t side = templates.sides[static_cast<size_t>(h) * area + k];
      if (side != 0) set(side, k);
    }
  }
  std::vector<int32_t> words_as_i32(packed.size());
  for (size_t k = 0; k < packed.size(); ++k) words_as_i32[k] = std::bit_cast<int32_t>(packed[k]);
  return words_as_i32;
}

Reach wall_reach(int side) {
  const int64_t reach = side / 2 + 2;
  return {reach, reach, reach, reach};
}

WallScene upload_walls(const Device& device, const Stream& stream, const City& city, const Tile& tile,
                       const WallTemplates& templates) {
  WallScene s;
  s.tile = tile;
  s.shape = PaddedShape(tile.window_rows, tile.window_cols);
  s.side = templates.side;
  s.dsm = upload_window(device, stream, city, city.dsm, tile, s.shape);
  s.walls = device.allocate<f32>({s.shape.elements()});
  device.clear(s.walls, stream);
  s.templates = upload_on(device, stream, pack_templates(templates));
  s.aspect = device.allocate<f32>({tile.rows, tile.cols});
  return s;
}

void find_wall_heights(const Device& device, const Stream& stream, const City& city, const WallScene& s,
                       double minimum_m) {
  const Range rows = in_window(1, city.rows - 2, s.tile.window_row),
              cols = in_window(1, city.cols - 2, s.tile.window_col);
  device.launch_on(stream, kernels::wall_height(), {s.shape.rows, s.shape.cols}, s.dsm, s.walls,
                   s.shape.pitch, static_cast<float>(minimum_m), rows.first, rows.last, cols.first,
                   cols.last);
}

void find_wall_aspects(const Device& device, const Stream& stream, const City& city, const WallScene& s) {
  const int64_t margin = (s.side + 1) / 2 - 1;
  const Range rows = in_window(margin, city.rows - margin - 3, s.tile.window_row);
  const Range cols = in_window(margin, city.cols - margin - 3, s.tile.window_col);
  const Range all_rows = in_window(0, city.rows - 1, s.tile.window_row);
  const Range all_cols = in_window(0, city.cols - 1, s.tile.window_col);
  device.launch_on(stream, wall_aspect_kernel(s.side), {s.tile.rows, s.tile.cols}, s.dsm, s.walls,
                   s.templates, s.aspect, s.tile.row - s.tile.window_row, s.tile.col - s.tile.window_col,
                   s.shape.pitch, rows.first, rows.last, cols.first, cols.last, all_rows.first, all_rows.last,
                   all_cols.first, all_cols.last, static_cast<float>(city.pixel_size_m));
}

Walls compute_walls(Context& context, const CityInput& input, const WallOptions& options,
                    const TileOptions& tiling) {
  if (!(options.minimum_height_m > 0))
    throw InputError(fmt::format("smallest wall of {} m", options.minimum_height_m), "walls",
                     "a positive height");
  const City city = prepare_city(input);
  const WallTemplates templates = wall_templates(city.pixel_size_m);
  const TilePlan plan = plan_tiles(context, kWallStage, city, wall_reach(templates.side), {8, 4, 4}, tiling);
  Walls walls{Raster(city.rows, city.cols), Raster(city.rows, city.cols)};
  std::vector<size_t> numbers(plan.tiles.size());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  std::mutex delivering;
  int64_t done = 0;
  TileReport report;
  struct Result {
    std::vector<float> walls, aspect;  // walls of the padded window
    PaddedShape shape;
  };
  for_each_tile(
      numbers, plan.workers,
      [&](size_t number) {
        const Tile& tile = plan.tiles[number];
        const Result result = context.stage(kWallStage, [&](const Device& device) {
          const Stream stream = plan.workers > 1 ? device.stream() : Stream{};
          const WallScene scene = upload_walls(device, stream, city, tile, templates);
          find_wall_heights(device, stream, city, scene, options.minimum_height_m);
          find_wall_aspects(device, stream, city, scene);
          Result r{std::vector<float>(static_cast<size_t>(scene.shape.elements())),
                   std::vector<float>(static_cast<size_t>(tile.core_pixels())), scene.shape};
          device.read(scene.walls, r.walls.data(), scene.walls.bytes(), stream);
          device.read(scene.aspect, r.aspect.data(), scene.aspect.bytes(), stream);
          return r;
        });
        const std::lock_guard lock(delivering);
        for (int64_t row = 0; row < tile.rows; ++row)
          for (int64_t col = 0; col < tile.cols; ++col)
            walls.height.at(tile.row + row, tile.col + col) = result.walls[static_cast<size_t>(
                result.shape.index(tile.row - tile.window_row + row, tile.col - tile.window_col + col))];
        stitch(tile, result.aspect.data(), walls.aspect);
        ++done;
        if (tiling.on_progress) tiling.on_progress(done, static_cast<int64_t>(plan.tiles.size()));
      },
      report);
  for (int64_t p = 0; p < city.pixels(); ++p) {
    if (!city.is_missing(p)) continue;
    walls.height.values[static_cast<size_t>(p)] = walls.aspect.values[static_cast<size_t>(p)] =
        std::numeric_limits<float>::quiet_NaN();
  }
  return walls;
}

}  // namespace lockstep::urban
