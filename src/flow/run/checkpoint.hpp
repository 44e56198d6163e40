// A run's checkpoint: settings, state and series in one .npz that appears whole or not at all.
#pragma once

#include <optional>

#include "flow/run/fields.hpp"

namespace lockstep::flow {

using SolverState = std::vector<std::pair<std::string, Array>>;

/// Everything that fixes the fields of a run, but for how long it goes on: one `name=value` a line.
std::string settings_text(const RunOptions& options, int64_t interval);

void write_checkpoint(const std::filesystem::path& path, const std::string& settings,
                      const SolverState& state, const Series& series);
/// The state of a checkpoint, and its series into `series`; nothing where there is no file. Throws InputError,
/// naming the first setting that differs.
std::optional<SolverState> read_checkpoint(const std::filesystem::path& path, const std::string& settings,
                                           Series& series);

}  // namespace lockstep::flow
