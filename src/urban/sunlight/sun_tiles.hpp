// Stage "urban.sun": the sun that the pixels and the facades of a city see, tile by tile.
#pragma once

#include <vector>

#include "urban/sunlight/facades.hpp"

namespace lockstep::urban {

struct SunJob {
  /// Suns that are added up; of several sums the least counts.
  std::vector<std::vector<Direction>> sums;
  RayOptions rays;
  int minutes = 10;
  const SunRuleFacts* rule = nullptr;  ///< null: none
  Facades* facades = nullptr;          ///< null: none; receives the counts

  double hours_of_one() const { return minutes / 60.0; }
  size_t positions() const;
  size_t least_positions() const;
};

/// Planes of the tiles: hours past plants and past buildings alone; with a rule the grades of both.
/// With facades every tile is computed: none is stored or taken over.
TileReport stream_sunlight(Context& context, const City& city, const SunJob& task, const TileOptions& tiles,
                           const TileSink& sink);

}  // namespace lockstep::urban
