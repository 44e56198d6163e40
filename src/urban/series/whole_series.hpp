// Whole series in memory, on the user's own city or on the sample: what gates and the table of quirks compare.
#pragma once

#include <filesystem>
#include <vector>

#include "urban/series/series_walls.hpp"
#include "urban/series/tiles.hpp"

namespace lockstep::urban {

/// A folder that is gone with the object.
struct ScratchFolder {
  std::filesystem::path path;
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
};

/// `given`, with the sample city (rows, cols) and hours of a clear day in June at 57.7° north, written to `folder`.
SeriesOptions sample_series(const SeriesOptions& given, const std::filesystem::path& folder,
                            const std::vector<int>& hours, const Shape& shape);

/// All outputs of all steps, whole grids one behind the other.
struct ComputedSeries {
  std::vector<float> values;
  TilePlan plan;
  int in_flight = 0;
  double seconds = 0;
};
ComputedSeries compute_series(Context& context, const SeriesInputs& inputs, const Walls& walls,
                              const std::vector<SeriesOutput>& outputs, const TileOptions& options);

}  // namespace lockstep::urban
