#pragma once

#include <filesystem>

#include "lockstep/flow/pipeline.hpp"

namespace lockstep::flow {

/// Errors of held-out fields over time, as `errors.png` of a folder.
std::filesystem::path draw_errors(const std::filesystem::path& folder, const FieldScores& fields,
                                  double frame_time);

}  // namespace lockstep::flow
