// Agreement of the ranks of a run, before and after its tiles.
#pragma once

#include <vector>

#include "lockstep/parallel.hpp"
#include "urban/tiles/run_tiles.hpp"

namespace lockstep::urban {

/// The tiles of a run over ranks: those of the rank with the least room, and several for each rank.
TilePlan plan_for_ranks(Context& context, const City& city, const TileJob& job, const TileOptions& options,
                        int64_t kept_side, const parallel::Group& group);

/// The work of a rank: a line of telemetry each on rank 0.
struct RankWork {
  int64_t tiles = 0, fallbacks = 0, files = 0;
  double seconds = 0;  // of its tiles
};
/// By rank, on rank 0, which so waits for the others; they do not.
std::vector<RankWork> gather_work(const parallel::Group& group, const RankWork& mine);

}  // namespace lockstep::urban
