// The files of a training in its folder.
#pragma once

#include <filesystem>
#include <vector>

#include "io/pictures/plot.hpp"
#include "lockstep/forecast/train.hpp"

namespace lockstep::forecast {

/// log.csv and log.jsonl, a row a step and seed.
void write_logs(const std::filesystem::path& folder, const std::vector<TrainRun>& runs);
/// Of each run a running mean of the training losses and, dashed, the validation losses, in one ink.
std::vector<io::PlotSeries> loss_curves(const TrainResult& result);
/// loss.png: training and validation losses over the steps.
void draw_losses(const std::filesystem::path& file, const TrainResult& result);

}  // namespace lockstep::forecast
