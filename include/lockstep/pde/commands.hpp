// The commands `lockstep pde` as functions: they read a file of arrays, compute losses and write files. to_json() returns
// the JSON of the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/pde/check.hpp"
#include "lockstep/pde/examples.hpp"
#include "lockstep/pde/run.hpp"
#include "lockstep/pde/study.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::pde {

struct LossRunOptions {
  std::filesystem::path input;  // the fields (.npz), as run_loss() takes them
  RunOptions run;
  std::filesystem::path out, residuals;  // gradients and residual fields (.npz); empty: no such file
};
struct TrajectoryRunOptions {
  std::filesystem::path input;  // as run_trajectory() takes them
  RunOptions run;
  std::filesystem::path out;
};
struct FileRun {
  RunResult result;
  std::filesystem::path out, residuals;  // as requested
  std::vector<StageRecord> host_stages;  // "read" and "write"
};
/// Arrays with types that are not supported are skipped with a warning. Stages and errors are those of run_loss() and
/// run_trajectory(). With several ranks, every rank reads the file; rank 0 returns the result and writes the files.
FileRun run(Context& context, const LossRunOptions& options, const parallel::Group& group = {});
FileRun run(Context& context, const TrajectoryRunOptions& options, const parallel::Group& group = {});

struct CheckRunOptions {
  std::filesystem::path input;
  RunOptions run;
  int64_t seed = 1;  // of the random directions
};
CheckResult run(Context& context, const CheckRunOptions& options);

std::string to_json(const FileRun& run);

std::span<const Choice<Gradients>> choices(Gradients);
void describe(Schema<TransportOptions>& schema);
void describe(Schema<RunOptions>& schema);
void describe(Schema<LossRunOptions>& schema);
void describe(Schema<TrajectoryRunOptions>& schema);
void describe(Schema<CheckRunOptions>& schema);
void describe(Schema<ConvergenceOptions>& schema);
void describe(Schema<StudyOptions>& schema);
void describe(Schema<TrainOptions>& schema);
void describe(Schema<ExampleOptions>& schema);
/// The options of all commands.
std::vector<NamedSchema> schemas();

}  // namespace lockstep::pde
