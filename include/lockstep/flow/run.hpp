// A complete simulation, as in `lockstep flow run`: initial field, steps, diagnostics and files, with stages, CPU
// fallback and telemetry. Programs with their own data use flow::Solver.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/flow.hpp"

namespace lockstep::parallel {
class Group;
}

namespace lockstep::flow {

struct RunOptions : SolverOptions {
  /// False: the grid is that of the initial field's file.
  bool grid_given = false;
  /// Name of an Initial, or a file: .npz or .nc with `omega`, .npy, MAT5 with `Omega`. With more than two axes, the
  /// last field in time is used; a leading axis with one entry per member gives each member its own field.
  std::string initial = "mcwilliams";
  uint64_t seed = 0;                     // of initial field and forcing; member m has seed + m
  std::optional<uint64_t> forcing_seed;  // of the forcing, instead of `seed`

  int64_t steps = 1000;
  double time = 0;  // end of the run, instead of `steps`, if above 0; a fixed dt is reduced to end there
  int64_t save_every = 0;  // steps between saved fields; 0: first and last only
  /// Steps between the rows of the result's history (energy, enstrophy, speeds, budgets); 0: none.
  int64_t history_every = 0;

  std::filesystem::path folder;
  /// The result as NetCDF (`run.nc`) if the library is found, else, with a line on stderr, `run.npz`.
  enum class Format : uint8_t { nc, npz };
  Format format = Format::nc;
  bool pictures = false;
  /// A film of the saved fields of member 0; empty: none.
  std::filesystem::path video;
  /// A file that is written whenever a field is saved; empty: none. If it exists, the run resumes from it; options, except
  /// steps, time, save_every and folders, and the content of the initial field must then be the same. Saved fields are in
  /// FILE.fields.
  std::filesystem::path checkpoint;
  std::function<void(int64_t done, int64_t total)> on_progress;  // in thousandths of the run
  /// Called about twice a second with the moment of member 0, its number of steps and its steps per second. Runs over
  /// several ranks do not call it.
  std::function<void(const Moment& moment, int64_t steps, double steps_per_second)> on_watch;
};

void describe(Schema<RunOptions>& schema);
std::span<const Choice<RunOptions::Format>> choices(RunOptions::Format);

struct RunResult {
  BoxGrid grid;
  Storage precision = Storage::f32;
  std::vector<Budget> budget;  // of each member at the end
  std::vector<double> time;
  std::vector<int64_t> steps;
  double dt_min = 0;                              // smallest dt
  double step_seconds = 0, steps_per_second = 0;  // of the steps of this process
  int64_t frames = 0;                             // number of saved fields
  int64_t resumed_at = -1;                        // step of the checkpoint, or -1
  std::vector<std::string> warnings;              // an energy that increases without forcing
  std::vector<std::filesystem::path> files;
};

/// Stages "flow.initial", "flow.steps", "flow.diagnostics". Throws InputError for invalid options and files, a dt above
/// the stability limit of the initial field, a checkpoint with other settings, and a flow that blows up. The last finite
/// field is then in `blow_up.npz`.
RunResult run(Context& context, const RunOptions& options);
/// The same over ranks. Every rank calls it with the same options and computes its share of the members, or a part of
/// each member if there are fewer members than ranks; device failures are then errors. Rank 0 writes the results, which
/// are bit-identical to those of one rank. The results of the other ranks are empty.
RunResult run(Context& context, const RunOptions& options, const parallel::Group& group);

/// The initial fields of a run: (ny, nx), or (members, ny, nx) if members differ. Sets the grid if the field is a file.
/// Throws InputError for an invalid file.
Array load_initial(RunOptions& options);

/// Differences between two saved runs, field by field at common times.
struct Comparison2d {
  struct Row {
    double time = 0, relative_l2 = 0, correlation = 0, energy_a = 0, energy_b = 0, enstrophy_a = 0,
           enstrophy_b = 0;
  };
  std::vector<Row> rows;
  double energy_drift = 0, enstrophy_drift = 0;  // relative change from A to B at the last time
  std::vector<double> spectrum_a, spectrum_b;    // of energy, at the last time
  double spectrum_error = 0;  // largest |log10(B / A)| over rings with at least 1e-12 of the sum of A
};
/// Compares two files of runs, or two files of single fields. Throws InputError for other contents and shapes.
Comparison2d compare_runs(const std::filesystem::path& a, const std::filesystem::path& b);

/// Members of the program's JSON, in one object.
std::string to_json(const RunResult& result);
std::string to_json(const Comparison2d& comparison);

}  // namespace lockstep::flow
