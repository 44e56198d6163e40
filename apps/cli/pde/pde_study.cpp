// `lockstep pde study`: times of the loss over sizes, boundaries, kernels and orders.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/reports/progress.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde/study.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct StudyCommand {
  std::string sizes, boundaries, kernels = "two-kernel,fused", orders = "2", gradients = "all", tiles;
  std::string system = "transport", csv;
  pde::StudyOptions options;
};

std::vector<int64_t> whole_numbers(const std::string& list, const char* option, const char* expected) {
  std::vector<int64_t> numbers;
  if (list.empty()) return numbers;
  for (const std::string& text : split_list(list, option)) {
    const auto number = parse_number(text);
    if (!number || *number != std::floor(*number) || std::abs(*number) > 1e6)
      throw InputError(fmt::format("'{}'", text), option, expected);
    numbers.push_back(int64_t(*number));
  }
  return numbers;
}

std::vector<std::string> between_semicolons(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

pde::StudyOptions study_options(const StudyCommand& command) {
  pde::StudyOptions options = command.options;
  options.sizes = whole_numbers(command.sizes, "--sizes", "cells along each axis, 4 to 1024");
  if (!command.boundaries.empty()) options.boundaries = between_semicolons(command.boundaries);
  options.kernels = split_list(command.kernels, "--kernels");
  options.gradients = split_list(command.gradients, "--gradients");
  if (!command.tiles.empty()) options.tiles = split_list(command.tiles, "--tiles");
  options.orders.clear();
  for (int64_t order : whole_numbers(command.orders, "--orders", "2, 4, 6, 8"))
    options.orders.push_back(int(order));
  options.csv = command.csv;
  options.flow = command.system == "flow";
  return options;
}

ordered_json to_json(const pde::StudyRow& row) {
  return {{"size", row.size},
          {"boundary", row.boundary},
          {"kernel", row.kernel},
          {"tile", row.tile},
          {"gradients", row.gradients},
          {"order", row.order},
          {"mean_ms", row.mean_ms},
          {"median_ms", row.median_ms},
          {"p95_ms", row.p95_ms},
          {"iterations", row.ms.size()},
          {"bytes", row.bytes},
          {"gbps", row.gbps},
          {"share_of_copy", row.share_of_copy},
          {"speedup_over_two_kernel", row.speedup_over_two_kernel},
          {"skipped", row.skipped}};
}

std::string to_text(const pde::StudyRow& row) {
  const std::string name = fmt::format("{:>12} {:<44} {:<10} {:<14} order {}", row.size, row.boundary,
                                       row.kernel, row.tile, row.order);
  if (!row.skipped.empty()) return fmt::format("{}: {}\n", name, row.skipped);
  return fmt::format("{} {:<4}: {:9.4f} ms {:8.1f} GB/s {:5.1f} % of copy\n", name, row.gradients,
                     row.median_ms, row.gbps, 100 * row.share_of_copy);
}

int run(const CommonOptions& common, const StudyCommand& command) {
  Session session(common);
  const Device device = session.open_device();
  std::optional<Progress> progress;
  const pde::StudyResult result =
      pde::run_study(device, study_options(command), [&](int64_t done, int64_t rows) {
        if (!progress) progress.emplace("pde study", rows);
        progress->set(done);
      });
  progress.reset();
  ordered_json list = ordered_json::array();
  std::string text = fmt::format("copy {:.1f} GB/s on {}\n", result.copy_gbps, result.device);
  for (const pde::StudyRow& row : result.rows) {
    list.push_back(to_json(row));
    text += to_text(row);
  }
  session.note_device(result.device, device.counters().peak_bytes);
  session.finish(
      {{"system", command.system}, {"copy_gbps", result.copy_gbps}, {"csv", command.csv}, {"results", list}},
      text);
  return 0;
}

}  // namespace

void add_pde_study(CommandList& commands, CLI::App& pde) {
  Command& command = add_command(commands, pde, "study", "times over sizes, boundaries, kernels and orders");
  auto options = std::make_shared<StudyCommand>();
  CLI::App& app = *command.app;
  add_text(app, "--sizes", options->sizes, "cells along each axis (default by the device)", "N,N…");
  add_text(app, "--boundaries", options->boundaries, "boundary specifications between semicolons",
           "SPEC;SPEC…");
  add_text(app, "--kernels", options->kernels,
           "two-kernel,fused (default), two-sweep, trajectory (time of a level)", "K,K…");
  add_text(app, "--orders", options->orders, "default 2", "N,N…");
  add_text(app, "--gradients", options->gradients, "all (default), t1, t1t2, none", "G,G…");
  add_text(app, "--tiles", options->tiles,
           "tiles of the fused kernel and the two sweeps: lanes along x and y, rows of a lane, planes of a "
           "chunk, groups a "
           "multiprocessor "
           "(default by the device), residual levels a sweep of a trajectory takes",
           "XxYxROWS[xPLANES[xGROUPS[xLEVELS]]],…");
  add_choice(app, "--system", options->system, "transport (default), or flow: incompressible",
             {"transport", "flow"});
  add_flag(app, "--graph", options->options.graph, "time the replay of a recording");
  add_integer(app, "--levels", options->options.levels, "levels of a trajectory (default 16)", "T", 3, 1000);
  add_integer(app, "--iterations", options->options.iterations,
              "runs of each row (default: half a second, 5 to 50)", "N", 1, 10000);
  add_output_file(app, "--csv", options->csv, "the table as CSV", kTables);
  add_common(command, "lockstep pde study --sizes 64,128 --csv study.csv");
  command.run = [&command, options] {
    const auto has = [&](const char* kernel) { return options->kernels.find(kernel) != std::string::npos; };
    if (!has("trajectory"))
      refuse_given(*command.app, {"--levels"}, "of trajectories", "--kernels with trajectory");
    if (!has("trajectory") && !has("fused") && !has("two-sweep"))
      refuse_given(*command.app, {"--tiles"}, "nothing has tiles",
                   "--kernels fused, two-sweep or trajectory");
    return run(command.common, *options);
  };
}

}  // namespace lockstep::cli
