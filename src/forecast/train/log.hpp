// The files of a training in its folder.
#pragma once

#include <filesystem>
#include <vector>

#include "lockstep/forecast/train.hpp"

namespace lockstep::forecast {

/// log.csv and log.jsonl, a row a step and seed.
void write_logs(const std::filesystem::path& folder, const std::vector<TrainRun>& runs);
/// loss.png: training and validation losses over the steps.
void draw_losses(const std::filesystem::path& file, const TrainResult& result);

}  // namespace lockstep::forecast
