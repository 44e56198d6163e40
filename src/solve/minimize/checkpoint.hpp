// The file that a minimisation, or several that follow each other, continues from.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "solve/minimize/run.hpp"

namespace lockstep::solve {

/// How a minimisation ended.
struct Outcome {
  Termination termination = Termination::failure;
  double final_cost = 0, gradient_max = 0;
  std::vector<double> values;
  std::string message;
};

/// Hashes of what decides whether a minimisation continues; kPosed says what differs, in the same order.
using Posed = std::array<Hash128, 6>;
inline constexpr std::array<const char*, 6> kPosed = {"another method",
                                                      "another precision",
                                                      "other blocks",
                                                      "another start",
                                                      "other fixed numbers or bounds",
                                                      "other terms, data or weights"};

/// One minimisation as far as it has come.
struct Checkpoint {
  Posed posed;
  Hash128 settings;  // of all other options that decide on iterates and on the end, but the iterations
  Snapshot snapshot;
  double initial_cost = 0, initial_gradient = 0;
  int64_t linear_iterations = 0;
  std::vector<Iteration> trace;
  std::optional<Outcome> outcome;
};
Posed posed(const Problem& problem, const Options& options);
Hash128 settings_hash(const Options& options);

/// The minimisations of one run, in their order: a run that starts again takes over those that had ended and
/// continues in the one that had not, so that it gives the same result. Written next to the file, then renamed
/// over it; little-endian numbers under a version and a checksum.
class CheckpointFile {
 public:
  /// The file of Options::checkpoint; empty: nothing is kept. Throws InputError for a file of another kind or
  /// version, and for a damaged one.
  explicit CheckpointFile(const Options& options);
  bool keeps() const { return !path_.empty(); }
  /// Seconds since the run began, which Options::time_limit limits.
  double seconds() const { return watch_.seconds(); }

  /// The next minimisation as the file has it, with an outcome where nothing is left to do; nothing where it
  /// was not begun. Throws InputError where the file's is another one, and names what differs.
  std::optional<Checkpoint> next(const Posed& posed, const Hash128& settings, int max_iterations);
  /// Replaces what the file has of the minimisation that next() was requested last.
  void write(const Checkpoint& now);

 private:
  std::filesystem::path path_;
  std::vector<Checkpoint> parts_;
  size_t begun_ = 0;
  Stopwatch watch_;
  bool leads_;  // and so writes
};

/// minimize() as the next of the minimisations under `file`; Options::checkpoint is not looked at. Without `notes`, properties
/// of the problem are not examined.
Summary minimize_next(Problem& problem, Context& context, const Options& options, CheckpointFile& file,
                      bool notes = true);

}  // namespace lockstep::solve
