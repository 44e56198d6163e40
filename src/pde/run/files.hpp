// The commands `lockstep pde loss` and `trajectory`, file to file.
#pragma once

#include <filesystem>
#include <vector>

#include "lockstep/pde/run.hpp"

namespace lockstep::pde {

/// The arrays of a NumPy archive; those of types that nothing here has a use for are left out with a warning.
NamedArrays read_arrays(const std::filesystem::path& path);

/// NumPy archives (.npz). Empty: no such file.
struct RunFiles {
  std::filesystem::path input, gradients, residuals;
};
struct FileRun {
  RunResult result;
  RunFiles files;
  std::vector<StageRecord> host_stages;  // "read" and "write"
};
/// `run` (run_loss or run_trajectory) on the arrays of a file. Arrays of types that it has no use for are left out
/// with a warning.
FileRun run_files(Context& context, RunResult (*run)(Context&, const NamedArrays&, const RunOptions&),
                  const RunFiles& files, const RunOptions& options);

/// Members of the program's JSON.
std::string to_json(const FileRun& run);

}  // namespace lockstep::pde
