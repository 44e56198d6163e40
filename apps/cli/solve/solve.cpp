// `lockstep solve`: the commands that fit curves. Graphs, meshes and sketches have files of their own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "solve_options.hpp"

namespace lockstep::cli {
namespace {

struct NistCommand {
  std::string input, start = "1";
  SolveOptions solve{solve::NistRun().options};
};

int run_nist(const CommonOptions& common, const NistCommand& command) {
  check_solve_options(command.solve, common);
  if (command.solve.robust != "none")
    throw InputError(fmt::format("'{}'", command.solve.robust), "--robust",
                     "none: the certified values are those of least squares");
  Session session(common);
  solve::NistRun run;
  run.file = command.input;
  run.start = command.start == "1" ? 1 : 2;
  return run_and_print(session, command.solve, run);
}

void add_nist(CommandList& commands, CLI::App& parent) {
  Command& command = add_command(commands, parent, "nist",
                                 "a reference dataset of NIST, scored in digits of its certified values");
  auto options = std::make_shared<NistCommand>();
  add_positional(*command.app, "FILE", options->input, "a .dat file of StRD nonlinear regression", true);
  add_choice(*command.app, "--start", options->start, "which of the file's two starts (1)", {"1", "2"});
  add_solve_options(*command.app, options->solve);
  add_common(command, "lockstep solve nist Misra1a.dat --start 2 --json");
  command.run = [&command, options] { return run_nist(command.common, *options); };
}

struct FitCommand {
  std::string input, model, x, y, sigma, initial, bounds, out, picture;
  SolveOptions solve;
};

/// --bounds, and --initial within them.
void set_ranges(const FitCommand& command, solve::FitRun& run) {
  for (const auto& [name, value] : assignments(command.initial, "--initial"))
    run.initial[name] = number_of(value, "--initial");
  for (const auto& [name, value] : assignments(command.bounds, "--bounds")) {
    const size_t colon = value.find(':');
    if (colon == std::string::npos)
      throw InputError(fmt::format("'{}'", value), "--bounds", "NAME=LOW:HIGH, inf and -inf for none");
    const double low = number_of(value.substr(0, colon), "--bounds"),
                 high = number_of(value.substr(colon + 1), "--bounds");
    if (!(low < high)) throw InputError(fmt::format("'{}'", value), "--bounds", "LOW below HIGH");
    run.bounds[name] = {low, high};
    if (const auto start = run.initial.find(name);
        start != run.initial.end() && !(start->second >= low && start->second <= high))
      throw InputError(fmt::format("{} starts at {}", name, start->second), "--initial",
                       fmt::format("a start within {} of --bounds", value));
  }
}

int run_fit(const CommonOptions& common, const FitCommand& command) {
  check_solve_options(command.solve, common);
  Session session(common);
  solve::FitRun run;
  run.file = command.input;
  run.model = command.model;
  run.y = command.y;
  run.sigma = command.sigma;
  if (!command.x.empty()) run.x = split_list(command.x, "--x");
  set_ranges(command, run);
  run.loss = robust_option(command.solve);
  run.out = command.out;
  run.picture = command.picture;
  return run_and_print(session, command.solve, run);
}

void add_fit(CommandList& commands, CLI::App& parent) {
  Command& command =
      add_command(commands, parent, "fit", "a formula fitted to columns of a table, with standard errors");
  auto options = std::make_shared<FitCommand>();
  CLI::App& app = *command.app;
  add_positional(app, "FILE", options->input, "a CSV file with a header line", true);
  add_text(app, "--model", options->model, "formula over columns and parameters", "FORMULA");
  add_text(app, "--x", options->x, "columns that the model names (all such but --y)", "NAMES");
  add_text(app, "--y", options->y, "column of the response", "NAME");
  add_text(app, "--sigma", options->sigma, "column of the response's standard deviations", "NAME");
  add_text(app, "--initial", options->initial, "start of parameters, a=1,b=2; others are found", "LIST");
  add_text(app, "--bounds", options->bounds, "limits of parameters, a=0:10,b=-inf:0", "LIST");
  add_output_file(app, "--out", options->out, "CSV: the table, fitted values and residuals", kTables);
  add_output_file(app, "--picture", options->picture, "data and model (.png, .svg)", kDrawings);
  require(app, "--model");
  require(app, "--y");
  add_solve_options(app, options->solve);
  add_common(command,
             "lockstep solve fit decay.csv --model \"a*exp(-b*t) + c\" --y count --bounds b=0:inf --picture "
             "decay.png");
  command.run = [&command, options] { return run_fit(command.common, *options); };
}

}  // namespace

void add_solve(CommandList& commands, CLI::App& root) {
  Command& solve = add_command(commands, root, "solve", "nonlinear least squares on any device");
  set_footer(*solve.app,
             "Example:\n  lockstep solve g2o sphere2500.g2o --linear cholesky --plot convergence.png");
  add_nist(commands, *solve.app);
  add_solve_g2o(commands, *solve.app);
  add_solve_bal(commands, *solve.app);
  add_fit(commands, *solve.app);
  add_solve_mesh(commands, *solve.app);
  add_solve_sketch(commands, *solve.app);
}

}  // namespace lockstep::cli
