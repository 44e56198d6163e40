// `lockstep pde check`: derivatives against complex steps and each other.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "lockstep/pde/check.hpp"
#include "pde/run/files.hpp"
#include "pde_options.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

int run(const CommonOptions& common, const PdeOptions& options, int64_t seed) {
  Session session(common);
  const pde::CheckResult result =
      pde::run_check(session.context(), pde::read_arrays(options.input), parse_run(options), uint32_t(seed));
  std::string text = fmt::format("{:<40} {:>9} {:>9}\n", "compared", "error", "bound");
  for (const pde::CheckRow& row : result.rows)
    text += fmt::format("{:<40} {:>9.2g} {:>9.2g}{}\n", row.what, row.error, row.bound,
                        row.passed() ? "" : "  over its bound");
  session.finish(nlohmann::ordered_json::parse(to_json(result)), text);
  return result.passed() ? 0 : 1;
}

}  // namespace

void add_pde_check(CommandList& commands, CLI::App& parent) {
  Command& command = add_command(commands, parent, "check",
                                 "compares residuals, gradients and products with J and its transpose with "
                                 "complex steps and each other");
  auto options = std::make_shared<PdeOptions>();
  auto seed = std::make_shared<int64_t>(1);
  add_pde_problem(*command.app, *options, {"auto", "fused", "two-sweep", "two-kernel"});
  add_integer(*command.app, "--seed", *seed, "of the random directions (default 1)", "N", 0, UINT32_MAX);
  add_common(command,
             "lockstep pde check frames.npz --spacing 0.1,0.1,0.1 --dt 0.05 --boundary x=no_slip,z=clamp");
  command.run = [&command, options, seed] { return run(command.common, *options, *seed); };
}

}  // namespace lockstep::cli
