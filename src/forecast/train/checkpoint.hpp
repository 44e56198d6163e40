// A training in one file: parameters, optimiser, policy, steps, log.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/record/identity.hpp"
#include "forecast/train/task.hpp"

namespace lockstep::forecast {

using NamedArrays = std::vector<std::pair<std::string, Array>>;

/// State that decides on the rest of a run: parameters and the optimiser's vectors in their storage, the policy's.
struct TrainingState {
  int64_t step = 0, optimizer_steps = 0, moment_steps = 0;
  Array parameters, first, second, move;
  NamedArrays policy;
};

/// Everything that decides on the result of a seed: options, the network, and data by content. The number of steps does where the
/// learning rate follows it; a target only says when a run ends. A policy's own settings are in its state.
record::Identity identity_of(const Task& task, const TrainOptions& options);

void write_checkpoint(const std::filesystem::path& path, const record::Identity& identity,
                      const TrainingState& state, const TrainRun& run);
/// Nothing where there is no such file. Throws InputError for another identity, for files that are no checkpoints and
/// for arrays larger than the task's.
std::optional<TrainingState> read_checkpoint(const std::filesystem::path& path,
                                             const record::Identity& identity, const Task& task,
                                             TrainRun& run);

}  // namespace lockstep::forecast
