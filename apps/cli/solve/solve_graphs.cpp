// `lockstep solve g2o` and `lockstep solve bal`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "memory_bound.hpp"
#include "solve_options.hpp"

namespace lockstep::cli {
namespace {

void add_residuals(CLI::App& app, std::string& file) {
  add_output_file(
      app, "--residuals", file,
      "CSV by edge or observation: term, instance, norm of the residual, what the robust loss leaves of it",
      kTables);
}

struct G2oCommand {
  std::string input, out, residuals, start = "file";
  SolveOptions solve{solve::PoseGraphRun().options};
};

int run_g2o(const CommonOptions& common, const G2oCommand& command) {
  check_solve_options(command.solve, common);
  Session session(common);
  solve::PoseGraphRun run;
  run.file = command.input;
  run.out = command.out;
  for (const solve::PoseStart start : {solve::PoseStart::tree, solve::PoseStart::chordal})
    if (command.start == solve::name(start)) run.start = start;
  run.loss = robust_option(command.solve);
  run.residuals = command.residuals;
  return run_and_print(session, command.solve, run);
}

struct BalCommand {
  std::string input, synthetic, out, ply, residuals;
  int64_t seed = 1;
  double noise = 0.5, disturbance = 1;
  SolveOptions solve{solve::BundleRun().options};
};

int64_t count_of(const std::string& text) {
  const auto number = parse_number(text);
  if (!number || *number != std::floor(*number) || *number < 1 || *number > 1e15)
    throw InputError(fmt::format("'{}'", text), "--synthetic", "whole numbers CAMERAS,OBSERVATIONS");
  return int64_t(*number);
}

solve::SyntheticScene scene_of(const BalCommand& command) {
  const std::vector<std::string> counts = split_list(command.synthetic, "--synthetic");
  if (counts.size() != 2)
    throw InputError(fmt::format("'{}'", command.synthetic), "--synthetic",
                     "two numbers CAMERAS,OBSERVATIONS");
  const int64_t cameras = count_of(counts[0]), observations = count_of(counts[1]);
  // An observation as it is read (two indices, two coordinates) and its residual's derivatives, 2 x 12 numbers in the
  // precision of the products.
  require_host_memory(double(observations) * (24 + 24 * 4), "--synthetic");
  return {cameras, observations, uint64_t(command.seed), command.noise, command.disturbance};
}

int run_bal(const CommonOptions& common, const BalCommand& command) {
  check_solve_options(command.solve, common);
  if (command.synthetic.empty())
    for (const char* option : {"--seed", "--noise", "--disturbance"})
      if (given(*command.solve.app, option))
        throw InputError("nothing uses it with a file", option, "--synthetic CAMERAS,OBSERVATIONS");
  Session session(common);
  solve::BundleRun run;
  run.file = command.input;
  if (!command.synthetic.empty()) run.synthetic = scene_of(command);
  run.loss = robust_option(command.solve);
  run.out = command.out;
  run.ply = command.ply;
  run.residuals = command.residuals;
  return run_and_print(session, command.solve, run);
}

}  // namespace

void add_solve_g2o(CommandList& commands, CLI::App& solve) {
  Command& command = add_command(commands, solve, "g2o", "a pose graph in 2 or 3 dimensions");
  auto options = std::make_shared<G2oCommand>();
  add_positional(*command.app, "FILE", options->input,
                 "g2o: poses and landmarks in 2 or 3 dimensions, edges between them, FIX", true);
  add_choice(
      *command.app, "--start", options->start,
      "file: the file's poses; tree: those that edges give, breadth first; chordal: of all edges at once "
      "(file; tree where the file has no poses)",
      {"file", "tree", "chordal"});
  add_output_file(*command.app, "--out", options->out, "the graph with the poses that were found",
                  {".g2o", ".txt"});
  add_residuals(*command.app, options->residuals);
  add_solve_options(*command.app, options->solve);
  add_graduate(*command.app, options->solve);
  add_common(command, "lockstep solve g2o sphere2500.g2o --linear cholesky --out solved.g2o");
  command.run = [&command, options] { return run_g2o(command.common, *options); };
}

void add_solve_bal(CommandList& commands, CLI::App& solve) {
  Command& command = add_command(commands, solve, "bal", "bundle adjustment: cameras and points from pixels");
  auto options = std::make_shared<BalCommand>();
  CLI::App& app = *command.app;
  add_positional(app, "FILE", options->input, "a problem in BAL's text format", false);
  add_text(app, "--synthetic", options->synthetic, "a ring of cameras around a column instead of a file",
           "CAMERAS,OBSERVATIONS");
  add_integer(app, "--seed", options->seed, "of --synthetic (1)", "N", 0, INT64_MAX);
  add_number(app, "--noise", options->noise, "standard deviation of synthetic observations (0.5)", "PX",
             {.low = 0});
  add_number(app, "--disturbance", options->disturbance,
             "distance of the synthetic start from the truth (1), 0: none", "X", {.low = 0, .high = 100});
  add_output_file(app, "--out", options->out, "the problem with the cameras and points that were found",
                  {".txt"});
  add_output_file(app, "--ply", options->ply, "points in grey, cameras in red", {".ply"});
  add_residuals(app, options->residuals);
  add_solve_options(app, options->solve);
  add_graduate(app, options->solve);
  add_common(command, "lockstep solve bal problem-49-7776-pre.txt --linear schur-pcg --ply scene.ply");
  command.run = [&command, options] { return run_bal(command.common, *options); };
}

}  // namespace lockstep::cli
