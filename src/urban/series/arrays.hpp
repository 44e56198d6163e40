// Runs hour by hour of a city that is in memory, and runs whose results stay there.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "urban/series/inputs/inputs.hpp"

namespace lockstep::urban {

/// Inputs of a run from memory instead of the options' files.
struct SeriesArrays {
  CityInput city;              ///< with an empty DSM: city, land cover and walls come from files
  Raster land_cover;           ///< empty: none
  std::optional<Walls> walls;  ///< else found
  double convergence_deg = 0;  ///< direction of the grid's north, clockwise from true north
  std::string weather;         ///< the text of a file of weather; empty: from the file
};

/// The outputs of a run.
struct SeriesGrids {
  std::vector<std::string> times;  ///< interval ends
  int64_t rows = 0, cols = 0;
  std::vector<float> values;  ///< (times, outputs, rows, cols)
};

SeriesInputs read_series_inputs(const SeriesOptions& options, const SeriesArrays& arrays);
/// The same of files, errors kept as rows: what could be read, and whether it was all.
std::pair<SeriesInputs, bool> check_series_inputs(const SeriesOptions& options);
/// As `run` of the options alone.
SeriesResult run(Context& context, const SeriesOptions& options, const SeriesArrays& arrays);
SeriesResult run(Context& context, const SeriesOptions& options, const SeriesArrays& arrays,
                 const parallel::Group& group);
/// As `run`, without a folder: nothing is written, and points are not read.
SeriesGrids compute(Context& context, const SeriesOptions& options, const SeriesArrays& arrays);

}  // namespace lockstep::urban
