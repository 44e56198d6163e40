#pragma once

#include <filesystem>

#include "io/pictures/plot.hpp"
#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {

/// Relative L2 errors of held-out fields, a point for each frame; frame 0 is `frame_time` after the last training frame.
std::vector<io::PlotSeries> error_curves(const FieldScores& fields, double frame_time);

/// Errors of held-out fields over time, as `errors.png` of a folder.
std::filesystem::path draw_errors(const std::filesystem::path& folder, const FieldScores& fields,
                                  double frame_time);

}  // namespace lockstep::flow
