#include "urban/series/series_walls.hpp"

#include "urban/walls/walls.hpp"

namespace lockstep::urban {

Walls walls_of_series(Context& context, const SeriesInputs& inputs, const WallOptions& options) {
  return inputs.walls ? *inputs.walls : collect_walls(context, inputs.city, options, {});
}

}  // namespace lockstep::urban
