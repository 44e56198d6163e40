// `lockstep flow`: run, compare; the commands in files beside it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/files/output_files.hpp"
#include "core/reports/log.hpp"
#include "core/reports/progress.hpp"
#include "flow_codec.hpp"
#include "flow_options.hpp"
#include "flow_surrogate.hpp"
#include "lockstep/error.hpp"
#include "lockstep/flow/memory.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

std::string summary(const flow::RunResult& r) {
  std::string text;
  for (size_t m = 0; m < r.budget.size(); ++m)
    text += fmt::format(
        "member {:<4} t {:<10.6g} steps {:<9} energy {:<12.6g} enstrophy {:<12.6g} palinstrophy {:.6g}\n", m,
        r.time[m], r.steps[m], r.budget[m].energy, r.budget[m].enstrophy, r.budget[m].palinstrophy);
  text += fmt::format("{:.4g} steps a second, smallest dt {:.4g}, {} fields in {}\n", r.steps_per_second,
                      r.dt_min, r.frames, r.files.front().string());
  if (r.resumed_at >= 0) text += fmt::format("went on from step {} of the checkpoint\n", r.resumed_at);
  return text;
}

std::string watch_text(const flow::Moment& m, int64_t steps, double speed) {
  return fmt::format(
      "t {:<10.5g} steps {:<9} energy {:<11.5g} dE/dt {:<11.3g} enstrophy {:<11.5g} "
      "max|u| {:<9.4g} cfl {:<8.3g} {:.4g} steps/s",
      m.time, steps, m.budget.energy, m.energy.all, m.budget.enstrophy, std::max(m.max_u, m.max_v), m.courant,
      speed);
}

/// Prints the device memory that a run would take, without making it.
int foretell_memory(const CommonOptions& common, flow::RunOptions options) {
  Session session(common);
  if (!options.grid_given && std::filesystem::exists(options.initial)) flow::load_initial(options);
  const DeviceInfo& device = session.context().device().info();
  const int64_t bytes =
      flow::memory_bytes(options.model, options.stepping, options.precision, options.members, device);
  const flow::BoxGrid& grid = options.model.grid;
  nlohmann::ordered_json result;
  result["n"] = {grid.ny, grid.nx};
  result["members"] = options.members;
  result["precision"] = name(options.precision);
  result["predicted_device_bytes"] = bytes;
  session.finish(std::move(result),
                 fmt::format("{} x {}, {} members, {}: {} bytes on {}\n", grid.ny, grid.nx, options.members,
                             name(options.precision), bytes, device.name));
  return 0;
}

int run_flow(const CommonOptions& common, const FlowArguments& arguments, bool watch, bool memory) {
  if (watch && (memory || common.quiet))
    throw InputError(memory ? "--watch with --memory" : "--watch with --quiet", "flow run", "one of them");
  flow::RunOptions options = flow_run_options(arguments);
  check_output_file(options.folder /
                    (options.format == flow::RunOptions::Format::npz ? "run.npz" : "run.nc"));
  if (memory) return foretell_memory(common, std::move(options));
  Session session(common);
  require_flow_memory(session.context(), options, !common.no_fallback, "--n");
  if (watch) {
    // In a terminal the line is drawn anew; else they stand one below the other.
    options.on_watch = [](const flow::Moment& m, int64_t steps, double speed) {
      const std::string text = watch_text(m, steps, speed);
      if (logging::is_terminal())
        logging::set_status(text.substr(0, size_t(logging::terminal_columns()) - 1));
      else
        logging::line(text);
    };
  } else {
    const auto progress = std::make_shared<Progress>("steps", 1000);
    options.on_progress = [progress](int64_t done, int64_t) { progress->set(done); };
  }
  const flow::RunResult result = flow::run(session.context(), options);
  logging::set_status("");
  session.finish(nlohmann::ordered_json::parse(flow::to_json(result)), summary(result));
  return 0;
}

int compare(const CommonOptions& common, const std::vector<std::string>& files) {
  if (files.size() != 2) throw InputError(fmt::format("{} files", files.size()), "flow compare", "two: A B");
  Session session(common);
  const flow::Comparison2d c =
      session.host_stage("flow.compare", [&] { return flow::compare_runs(files[0], files[1]); });
  std::string text = fmt::format("{:>12} {:>12} {:>12} {:>12} {:>12}\n", "time", "relative L2", "correlation",
                                 "dE / E", "dZ / Z");
  for (const auto& row : c.rows)
    text += fmt::format("{:>12.6g} {:>12.4g} {:>12.6f} {:>12.4g} {:>12.4g}\n", row.time, row.relative_l2,
                        row.correlation, row.energy_a != 0 ? row.energy_b / row.energy_a - 1 : row.energy_b,
                        row.enstrophy_a != 0 ? row.enstrophy_b / row.enstrophy_a - 1 : row.enstrophy_b);
  text += fmt::format("energy spectra differ by at most {:.4g} decades\n", c.spectrum_error);
  session.finish(nlohmann::ordered_json::parse(flow::to_json(c)), text);
  return 0;
}

}  // namespace

void add_flow(CommandList& commands, CLI::App& root) {
  Command& flow = add_command(commands, root, "flow", "two-dimensional turbulence");
  set_footer(*flow.app,
             "Example:\n  lockstep flow run --n 512 --closure smagorinsky --time 10 --cfl 0.5 --out out");

  Command& run = add_command(commands, *flow.app, "run", "simulate a flow on a doubly periodic box");
  auto arguments = std::make_shared<FlowArguments>();
  add_flow_options(*run.app, *arguments);
  const auto watch = std::make_shared<bool>(false);
  add_flag(*run.app, "--watch", *watch, "energy, enstrophy and speed on stderr while it runs");
  const auto memory = std::make_shared<bool>(false);
  add_flag(*run.app, "--memory", *memory, "only say what the run needs on the device");
  add_common(run,
             "lockstep flow run --n 512 --ic mcwilliams --closure smagorinsky:0.17 --cfl 0.5 --time 10 "
             "--save-every 200 --pictures --out out");
  run.run = [&run, arguments, watch, memory] {
    check_flow_options(*run.app, *arguments);
    return run_flow(run.common, *arguments, *watch, *memory);
  };

  Command& both = add_command(commands, *flow.app, "compare", "how two saved runs differ");
  auto files = std::make_shared<std::vector<std::string>>();
  add_positional(*both.app, "files", *files, "run.npz of both, or single fields (.npz, .npy, .mat)");
  add_common(both, "lockstep flow compare coarse/run.npz fine/run.npz");
  both.run = [&both, files] { return compare(both.common, *files); };

  add_flow_codec(commands, flow);
  add_flow_surrogate(commands, flow);
  add_flow_pipeline(commands, flow);
}

}  // namespace lockstep::cli
