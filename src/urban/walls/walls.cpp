// Heights and directions of walls: stage "urban.walls".
#include "urban/walls/walls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/memo.hpp"
#include "lockstep/error.hpp"
#include "lockstep/urban.hpp"
#include "urban/city/scene.hpp"
#include "urban/rays/kernels.hpp"

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

Kernel wall_aspect_kernel(int side, WallTies ties) {
  static Memo<std::pair<int, WallTies>, Kernel> kernels;
  return kernels.get({side, ties}, [&] { return kernels::wall_aspect(side, ties); });
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
  s.walls = allocate_window(device, tile);
  device.clear(s.walls, stream);
  s.templates = upload_on(device, stream, pack_templates(templates));
  s.aspect = allocate_core<f32>(device, 1, tile).reshape({tile.rows, tile.cols});
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

void find_wall_aspects(const Device& device, const Stream& stream, const City& city, const WallScene& s,
                       WallTies ties) {
  const int64_t margin = (s.side + 1) / 2 - 1;
  const Range rows = in_window(margin, city.rows - margin - 3, s.tile.window_row);
  const Range cols = in_window(margin, city.cols - margin - 3, s.tile.window_col);
  const Range all_rows = in_window(0, city.rows - 1, s.tile.window_row);
  const Range all_cols = in_window(0, city.cols - 1, s.tile.window_col);
  device.launch_on(stream, wall_aspect_kernel(s.side, ties), {s.tile.rows, s.tile.cols}, s.dsm, s.walls,
                   s.templates, s.aspect, s.tile.row - s.tile.window_row, s.tile.col - s.tile.window_col,
                   s.shape.pitch, rows.first, rows.last, cols.first, cols.last, all_rows.first, all_rows.last,
                   all_cols.first, all_cols.last, static_cast<float>(city.pixel_size_m));
}

TileReport stream_walls(Context& context, const City& city, const WallOptions& options,
                        const TileOptions& tiles, const TileSink& sink) {
  if (!(options.minimum_height_m > 0))
    throw InputError(fmt::format("smallest wall of {} m", options.minimum_height_m), "walls",
                     "a positive height");
  if (city.windows)  // its kernels know the raster's edge by places in the whole of it
    throw InputError("a city that is read tile by tile", "walls", "a city that is in memory");
  const WallTemplates templates = wall_templates(wall_template_side(city.pixel_size_m, options.filter));
  TileJob job;
  job.stage = kWallStage;
  job.field_prefix = "walls_";
  job.reach = wall_reach(templates.side);
  job.cost = {8, 4, 4, 8};
  job.planes = 2;
  job.options = fmt::format("{} m, lines of {}, {} angle", options.minimum_height_m, templates.side,
                            options.ties == WallTies::middle ? "middle" : "first");
  job.compute = [&](const Device& device, const Stream& stream, const City&, const Tile& tile,
                    const TileResult& result, const Advance&) {
    const WallScene scene = upload_walls(device, stream, city, tile, templates);
    find_wall_heights(device, stream, city, scene, options.minimum_height_m);
    find_wall_aspects(device, stream, city, scene, options.ties);
    const Buffer lines = scene.walls.reshape({scene.shape.padded_rows(), scene.shape.pitch})
                             .rows(tile.row - tile.window_row + kPad, tile.rows);
    std::vector<float> walls_of_lines(static_cast<size_t>(lines.elements()));
    device.read(lines, walls_of_lines.data(), lines.bytes(), stream);
    for (int64_t row = 0; row < tile.rows; ++row)
      std::copy_n(
          &walls_of_lines[static_cast<size_t>(row * scene.shape.pitch + tile.col - tile.window_col + kPad)],
          tile.cols, result.plane(0) + row * tile.cols);
    device.read(scene.aspect, result.plane(1), scene.aspect.bytes(), stream);
  };
  return run_tiles(context, city, job, tiles, sink);
}

Walls collect_walls(Context& context, const City& city, const WallOptions& options, const TileOptions& tiles,
                    TileReport* report) {
  Walls walls{Raster(city.rows, city.cols), Raster(city.rows, city.cols)};
  const TileReport done =
      stream_walls(context, city, options, tiles, [&](const Tile& tile, const TileResult& result) {
        stitch(tile, result.plane(0), walls.height);
        stitch(tile, result.plane(1), walls.aspect);
      });
  if (report) *report = done;
  return walls;
}

Walls walls_for(Context& context, const City& city, const WallOptions& options, TileOptions tiles) {
  tiles.on_progress = {};
  tiles.resume_folder.clear();
  return collect_walls(context, city, options, tiles);
}

Walls compute_walls(Context& context, const CityInput& input, const WallOptions& options,
                    const TileOptions& tiles, TileReport* report) {
  return collect_walls(context, prepare_city(input), options, tiles, report);
}

}  // namespace lockstep::urban
