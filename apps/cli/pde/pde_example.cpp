// `lockstep pde example`: a shipped equation solved by the gradients of its residual loss, with a picture.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/reports/log.hpp"
#include "core/reports/progress.hpp"
#include "lockstep/pde/examples.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct ExampleCommand {
  std::string name, out;
  int64_t cells = 0, levels = 0, windows = 0, iterations = 0;
  std::string parameters;
};

int run(const CommonOptions& common, const ExampleCommand& command) {
  Session session(common);
  pde::ExampleOptions options;
  options.name = command.name;
  options.cells = command.cells;
  options.folder = command.out;
  for (const auto& [name, value] : assignments(command.parameters, "--parameters"))
    options.parameters[name] = number_of(value, "--parameters");
  options.train.levels = int(command.levels);
  options.train.windows = int(command.windows);
  options.train.iterations = int(command.iterations);
  std::optional<Progress> progress;
  options.progress = [&](int64_t, int64_t windows) {
    if (!progress) progress.emplace("pde example " + command.name, windows, "windows");
    progress->add();
  };
  const pde::ExampleResult result = pde::run_example(session.context(), options);
  progress.reset();
  for (const StageRecord& stage : result.host_stages) session.note(stage);
  const pde::TrainResult& train = result.train;
  session.finish(
      nlohmann::ordered_json::parse(to_json(result)),
      fmt::format("{}: {}\n{}, {} iterations; loss of the last {:.4g} -> {:.4g}\npicture: {}\n", result.name,
                  result.description,
                  result.levels ? fmt::format("{} windows of {} levels", train.windows, result.levels)
                                : std::string("steady"),
                  train.iterations, train.losses_first.back(), train.losses_last.back(),
                  result.picture.string()));
  if (result.converged()) return 0;
  logging::error("{} of {} windows did not converge: try more --iterations", train.windows - train.converged,
                 train.windows);
  return 1;
}

}  // namespace

void add_pde_example(CommandList& commands, CLI::App& pde) {
  Command& command =
      add_command(commands, pde, "example", "solve a shipped equation by the gradients of its residuals");
  auto options = std::make_shared<ExampleCommand>();
  CLI::App& app = *command.app;
  std::string names;
  for (const std::string& name : pde::example_names()) names += (names.empty() ? "" : ", ") + name;
  add_positional(app, "NAME", options->name, names, true);
  add_output_folder(app, "--out", options->out, "folder for the fields (.npy) and the picture (.png)");
  require(app, "--out");
  add_integer(app, "--cells", options->cells, "cells along each axis (default by the example)", "N", 8, 4096);
  add_text(app, "--parameters", options->parameters,
           "numbers instead of the example's, nu=0.0025,lid=1; an unknown name lists them", "LIST");
  add_integer(app, "--levels", options->levels,
              "time levels of a window (default 8; none for cavity and channel)", "N", 4, 64);
  add_integer(app, "--windows", options->windows,
              "windows one after the other, or grids of cavity and channel, each twice as fine (default by "
              "the example)",
              "N", 1, 100000);
  add_integer(app, "--iterations", options->iterations,
              "steps of L-BFGS a window, at most (default by the example); where a window needs more, the "
              "command ends with exit code 1",
              "N", 1, 100000);
  add_common(command, "lockstep pde example gray_scott --out out");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
