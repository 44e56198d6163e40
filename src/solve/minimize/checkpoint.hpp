// The file that a minimisation goes on from.
#pragma once

#include <filesystem>
#include <optional>

#include "core/hash.hpp"
#include "solve/minimize/run.hpp"

namespace lockstep::solve {

struct Checkpoint {
  Snapshot snapshot;
  double initial_cost = 0;
  int64_t linear_iterations = 0;
  std::vector<Iteration> trace;
};

/// Of the problem's structure and data, the method and the precision; not of its values.
Hash128 fingerprint(const Problem& problem, const Options& options);

/// Beside the file, then renamed over it. Little-endian numbers under a version and a checksum.
void write_checkpoint(const std::filesystem::path& file, const Hash128& fingerprint,
                      const Checkpoint& checkpoint);
/// Empty where there is no file. Throws InputError for a file of another kind, version or problem, and for a
/// damaged one.
std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& file, const Hash128& fingerprint);

}  // namespace lockstep::solve
