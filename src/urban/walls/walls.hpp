// The parts of the stage "urban.walls", for its cases and for the tiles.
#pragma once

#include <vector>

#include "lockstep/device.hpp"
#include "urban/city/prepare.hpp"
#include "urban/rays/ray_table.hpp"
#include "urban/tiles/run_tiles.hpp"
#include "urban/walls/wall_templates.hpp"

namespace lockstep::urban {

inline constexpr char kWallStage[] = "urban.walls";

/// A window of the city and its walls.
struct WallScene {
  Tile tile;
  PaddedShape shape;
  Buffer dsm, walls;  ///< padded, flat
  Buffer templates;   ///< packed bits
  Buffer aspect;      ///< core grid (rows, cols)
  int side = 0;
};

/// kernels::wall_aspect of this side, traced once.
Kernel wall_aspect_kernel(int side, WallTies ties);

/// Lines and sides as the kernel reads them: a row of 3 · template_words(side) words an angle.
std::vector<int32_t> pack_templates(const WallTemplates& templates);

/// Pixels around a core that its walls depend on.
Reach wall_reach(int side);

WallScene upload_walls(const Device& device, const Stream& stream, const City& city, const Tile& tile,
                       const WallTemplates& templates);
void find_wall_heights(const Device& device, const Stream& stream, const City& city, const WallScene& scene,
                       double minimum_m);
void find_wall_aspects(const Device& device, const Stream& stream, const City& city, const WallScene& scene,
                       WallTies ties);

/// Computes all tiles; their planes are height and direction.
TileReport stream_walls(Context& context, const City& city, const WallOptions& options,
                        const TileOptions& tiles, const TileSink& sink);
/// The same as whole grids. `report`: null where nobody reads it.
Walls collect_walls(Context& context, const City& city, const WallOptions& options, const TileOptions& tiles,
                    TileReport* report = nullptr);
/// The same for another computation, which has the progress and the kept tiles.
Walls walls_for(Context& context, const City& city, const WallOptions& options, TileOptions tiles);

}  // namespace lockstep::urban
