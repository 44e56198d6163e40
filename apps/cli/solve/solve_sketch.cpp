// `lockstep solve sketch`: geometric constraints between points, lines and circles.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "solve_options.hpp"

namespace lockstep::cli {
namespace {

struct SketchCommand {
  std::string input, out;
  bool allow_conflicts = false;
  SolveOptions solve{solve::SketchRun().options};
};

int run_sketch(const CommonOptions& common, const SketchCommand& command) {
  check_solve_options(command.solve, common);
  if (command.solve.robust != "none")
    throw InputError(fmt::format("'{}'", command.solve.robust), "--robust",
                     "none: constraints hold or do not");
  Session session(common);
  solve::SketchRun run;
  run.file = command.input;
  run.out = command.out;
  run.allow_conflicts = command.allow_conflicts;
  return run_and_print(session, command.solve, run);
}

}  // namespace

void add_solve_sketch(CommandList& commands, CLI::App& parent) {
  Command& command = add_command(commands, parent, "sketch", "points, lines and circles under constraints");
  auto options = std::make_shared<SketchCommand>();
  CLI::App& app = *command.app;
  add_positional(app, "FILE", options->input, "a sketch as TOML; docs/sketch.md has the format", true);
  add_output_file(app, "--out", options->out,
                  "a drawing (.svg, .png), or the same sketch with the places found (.toml)",
                  {".svg", ".png", ".toml"});
  add_flag(app, "--allow-conflicts", options->allow_conflicts,
           "write the sketch that misses contradicting constraints least instead of refusing it");
  add_solve_options(app, options->solve);
  add_common(command, "lockstep solve sketch examples/sketches/bracket.toml --out bracket.svg");
  command.run = [&command, options] { return run_sketch(command.common, *options); };
}

}  // namespace lockstep::cli
