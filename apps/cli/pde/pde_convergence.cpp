// `lockstep pde convergence`: how fast residuals of exact solutions vanish with the cell size.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lockstep/error.hpp"
#include "lockstep/pde/study.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct ConvergenceCommand {
  std::string sizes = "12,16,24,32,48,64", csv, out;
};

int run(const CommonOptions& common, const ConvergenceCommand& command) {
  Session session(common);
  pde::ConvergenceOptions options;
  options.sizes.clear();
  for (const std::string& s : split_list(command.sizes, "--sizes")) {
    const auto number = parse_number(s);
    options.sizes.push_back(number && *number == std::floor(*number) && *number < 1e6 ? int64_t(*number)
                                                                                      : -1);
    if (options.sizes.back() < 0)
      throw InputError(fmt::format("size '{}'", s), "--sizes", "cells along each axis, 10 to 512");
  }
  options.csv = command.csv;
  options.plot = command.out;
  const pde::ConvergenceResult result = pde::run_convergence(session.context(), options);
  ordered_json points = ordered_json::array(), slopes = ordered_json::array();
  std::string text;
  for (const pde::ConvergencePoint& p : result.points)
    points.push_back({{"field", p.field}, {"order", p.order}, {"cells", p.cells}, {"residual", p.residual}});
  for (const pde::ConvergenceSlope& s : result.slopes) {
    slopes.push_back({{"field", s.field}, {"order", s.order}, {"observed", s.observed}});
    text += fmt::format("{:<9} order {}: observed {:.3f}\n", s.field, s.order, s.observed);
  }
  session.finish({{"results", points}, {"observed", slopes}, {"csv", command.csv}, {"out", command.out}},
                 text);
  return 0;
}

}  // namespace

void add_pde_convergence(CommandList& commands, CLI::App& pde) {
  Command& command =
      add_command(commands, pde, "convergence", "residuals of exact solutions over the cell size");
  auto options = std::make_shared<ConvergenceCommand>();
  add_text(*command.app, "--sizes", options->sizes, "cells along each axis (default 12,16,24,32,48,64)",
           "N,N…");
  add_output_file(*command.app, "--out", options->out, "where the plot goes (.svg, .png)", kDrawings);
  add_output_file(*command.app, "--csv", options->csv, "the table as CSV", kTables);
  add_common(command, "lockstep pde convergence --out convergence.svg");
  command.run = [&command, options] { return run(command.common, *options); };
}

}  // namespace lockstep::cli
