// A whole run: heights and directions of walls.
#include "core/reports/host_stage.hpp"
#include "urban/pictures/looks.hpp"
#include "urban/run/files/city_files.hpp"
#include "urban/run/files/outputs.hpp"
#include "urban/walls/walls.hpp"

namespace lockstep::urban {

WallRunResult run(Context& context, const WallRunOptions& options) {
  WallRunResult result;
  LoadedCity loaded = host_stage(result.host_stages, "read", [&] { return read_city(options.city); });
  begin(result, loaded);
  Outputs outputs(options.output, loaded.grid, wall_looks());
  const std::vector<float> relief = relief_of(loaded.input.dsm, loaded.grid, options.output);
  {
    const City city = prepare_city(std::move(loaded.input));
    result.tiles =
        stream_walls(context, city, options.walls, options.tiles,
                     [&](const Tile& tile, const TileResult& grids) { outputs.take(tile, grids); });
  }
  host_stage(result.host_stages, "write", [&] { finish(result, outputs, names_of(wall_looks()), relief); });
  return result;
}

}  // namespace lockstep::urban
