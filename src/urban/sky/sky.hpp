// The parts of the stage "urban.svf", for its cases and for the tiles.
#pragma once

#include "device/variants/variants.hpp"
#include "urban/city/scene.hpp"
#include "urban/sky/sky_plan.hpp"
#include "urban/tiles/run_tiles.hpp"

namespace lockstep::urban {

inline constexpr char kSkyStage[] = "urban.svf";

struct SkyBuffers {
  Buffer states;      ///< u32 (words, rows, cols)
  Buffer grids;       ///< f32 (15, or 5 without plants, rows, cols)
  Buffer rays;        ///< table of the rays for the scene's shape
  Buffer view_table;  ///< masks and weights
};
SkyBuffers allocate_sky(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& scene);

/// States of the patches in words first_word … first_word + words - 1.
void cast_sky(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& scene,
              const SkyBuffers& buffers, int first_word, int words);
/// The grids from all states.
void view_sky(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& scene,
              const SkyBuffers& buffers);

/// How many words a launch casts: "words" one, which gives progress, "whole" all of them.
const variants::Computation& sky_computation();
/// All states, `step` words a launch.
void cast_words(const Device& device, const Stream& stream, const SkyPlan& plan, const Scene& scene,
                const SkyBuffers& buffers, int step, const Advance& advance);

/// States and grids of a tile, on the device.
SkyBuffers make_sky_tile(const Device& device, const Stream& stream, const City& city, const SkyPlan& plan,
                         const Tile& tile, const Advance& advance);

/// One tile: the 15 grids in the order of kSkyViewNames and, where the result has words, the states.
void compute_sky_tile(const Device& device, const Stream& stream, const City& city, const SkyPlan& plan,
                      const Tile& tile, const TileResult& result, const Advance& advance);

/// Computes all tiles: the 15 grids in the order of kSkyViewNames, and the states if they are to be kept.
TileReport stream_sky(Context& context, const City& city, const SkyOptions& options, const TileOptions& tiles,
                      const TileSink& sink);

}  // namespace lockstep::urban
