// A training in one file: parameters, optimiser, policy, steps, log.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "forecast/train/task.hpp"

namespace lockstep::forecast {

using NamedArrays = std::vector<std::pair<std::string, Array>>;

/// State that decides on the rest of a run: parameters and the optimiser's vectors in their storage, the policy's.
struct TrainingState {
  int64_t step = 0, optimizer_steps = 0, moment_steps = 0;
  Array parameters, first, second, move;
  NamedArrays policy;
};

/// The settings that a checkpoint and the run that reads it must share, line by line.
std::string settings_text(const Task& task, const TrainOptions& options, uint64_t seed);

void write_checkpoint(const std::filesystem::path& path, const std::string& settings,
                      const TrainingState& state, const TrainRun& run);
/// Nothing where there is no such file. Throws InputError for other settings and for files that are no checkpoints.
std::optional<TrainingState> read_checkpoint(const std::filesystem::path& path, const std::string& settings,
                                             TrainRun& run);

}  // namespace lockstep::forecast
