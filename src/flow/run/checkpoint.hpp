// A run's checkpoint: settings, state and series in one .npz that appears whole or not at all.
#pragma once

#include <optional>

#include "core/record/identity.hpp"
#include "flow/run/fields.hpp"

namespace lockstep::flow {

using SolverState = std::vector<std::pair<std::string, Array>>;

/// Everything that fixes the fields of a run; how long it continues and what is saved of it may change. `initial` is the
/// content of a field from a file.
record::Identity identity_of(const RunOptions& options, const Array& initial);

void write_checkpoint(const std::filesystem::path& path, const record::Identity& identity,
                      const SolverState& state, const Series& series);
/// The state of a checkpoint, and its series into `series`; nothing where there is no file. Throws InputError,
/// naming what differs. `options` say how large the arrays may be.
std::optional<SolverState> read_checkpoint(const std::filesystem::path& path,
                                           const record::Identity& identity, const RunOptions& options,
                                           Series& series);

}  // namespace lockstep::flow
