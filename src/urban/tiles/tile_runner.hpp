// Runs the tiles of a raster, a bounded number at a time, each as one run of a stage.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/urban.hpp"
#include "urban/city/prepare.hpp"
#include "urban/tiles/tiling.hpp"

namespace lockstep::urban {

/// Bytes that one tile keeps on the device.
struct TileCost {
  uint64_t window_bytes = 0;       ///< a padded window pixel
  uint64_t core_bytes = 0;         ///< a core pixel
  uint64_t widest_core_bytes = 0;  ///< of the widest buffer a core pixel
};

/// The plan for a raster: its tiles and how many may be in flight.
struct TilePlan {
  int64_t side = 0;
  int workers = 1;
  std::vector<Tile> tiles;
  uint64_t predicted_bytes = 0;
};

/// Applies the rule of docs/urban.md to the context's device. Where not one tile fits a GPU, that is a
/// failure of the stage, and the CPU's memory counts. `side_hint` > 0 replaces an automatic side if it fits.
TilePlan plan_tiles(Context& context, std::string_view stage, const City& city, const Reach& reach,
                    const TileCost& cost, const TileOptions& options, int64_t side_hint = 0);

/// Calls `run(worker's tile number)` for every number, at most `workers` at a time; the first exception stops
/// the rest and is thrown on. Fills in workers and queue_depth_peak.
void for_each_tile(const std::vector<size_t>& numbers, int workers, const std::function<void(size_t)>& run,
                   TileReport& report);

/// Cores copied into whole grids; not a pixel is written twice.
void stitch(const Tile& tile, const float* core, Raster& whole);

}  // namespace lockstep::urban
