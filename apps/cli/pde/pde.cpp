// `lockstep pde`: loss and trajectory. The other commands have files of their own.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "pde/run/files.hpp"
#include "pde_options.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

using Run = pde::RunResult (*)(Context&, const pde::NamedArrays&, const pde::RunOptions&);

int run(const CommonOptions& common, const PdeOptions& options, Run work) {
  Session session(common);
  pde::RunOptions wanted = parse_run(options);
  wanted.any_path = !common.no_fallback;
  if (!options.out.empty() && options.gradients == "none")
    throw InputError("nothing to write with --gradients none", "--out", "other gradients, or no --out");
  const pde::FileRun run =
      pde::run_files(session.context(), work, {options.input, options.out, options.residuals}, wanted);
  for (const StageRecord& stage : run.host_stages) session.note(stage);
  const pde::RunResult& result = run.result;
  if (!result.path_refused.empty()) logging::line(fmt::format("{}; two-kernel is used", result.path_refused));

  std::string text = fmt::format("loss {:.9g}\n", result.loss);
  for (const auto& [name, value] : result.terms) text += fmt::format("  {} {:.9g}\n", name, value);
  for (const auto& [name, slope] : result.by_number) text += fmt::format("  by {} {:.9g}\n", name, slope);
  if (!options.out.empty()) text += fmt::format("gradients: {}\n", options.out);
  if (!options.residuals.empty()) text += fmt::format("residual fields: {}\n", options.residuals);
  session.finish(nlohmann::ordered_json::parse(to_json(run)), text);
  return 0;
}

void add_run(CommandList& commands, CLI::App& parent, const std::string& name, const std::string& help,
             Run work, const std::vector<std::string>& kernels, const std::vector<std::string>& gradients,
             const std::string& example) {
  Command& command = add_command(commands, parent, name, help);
  auto options = std::make_shared<PdeOptions>();
  add_pde_options(*command.app, *options, kernels, gradients);
  if (name == "loss")
    add_output_file(*command.app, "--residuals", options->residuals, "where the residual fields go (.npz)",
                    {".npz"});
  add_common(command, example);
  command.run = [&command, options, work] { return run(command.common, *options, work); };
}

}  // namespace

void add_pde(CommandList& commands, CLI::App& root) {
  Command& pde = add_command(commands, root, "pde",
                             "losses from residuals of differential equations, with exact gradients");
  set_footer(*pde.app,
             "Input of loss and check: sigma0 sigma1 sigma2 (nz,ny,nx), u0 u1 u2 (3,nz,ny,nx; component 0 = "
             "x), f4 or "
             "f8, optional mask (nz,ny,nx);\n"
             "of trajectory: sigma (T,nz,ny,nx), u (T,3,nz,ny,nx).\n"
             "Boundaries: periodic, clamp, reflect_even, reflect_odd, free_slip, no_slip, dirichlet_face:b, "
             "ghost_zero, ghost:c,\n"
             "node_mirror, one_sided1, one_sided2; for all, by axis (x=…) or by side (x-=…, x+=…).\n"
             "A value may be a name, dirichlet_face:@lid: of --parameters, or an array lid of the input: a "
             "number (), a\n"
             "profile (nz,ny) of a side of x, (nz,nx) of y, (ny,nx) of z; of a trajectory also one each "
             "level, (T,) and (T,…).\n"
             "Their derivatives go to d_lid of --out.\n"
             "Example:\n  lockstep pde loss frames.npz --spacing 0.1,0.1,0.1 --dt 0.05 --out gradients.npz");
  add_run(commands, *pde.app, "loss", "loss and gradients of three time levels", pde::run_loss,
          {"auto", "fused", "two-sweep", "two-kernel", "reference"}, {"all", "t1", "t1t2", "none"},
          "lockstep pde loss frames.npz --spacing 0.1,0.1,0.1 --dt 0.05 --boundary "
          "x=no_slip,z=clamp --out gradients.npz");
  add_run(commands, *pde.app, "trajectory", "loss and gradients of T time levels in one go",
          pde::run_trajectory, {"auto", "fused", "two-kernel"}, {"all", "none"},
          "lockstep pde trajectory run.npz --spacing 0.1,0.1,0.1 --dt 0.05 --out gradients.npz");
  add_pde_check(commands, *pde.app);
  add_pde_study(commands, *pde.app);
  add_pde_example(commands, *pde.app);
  add_pde_convergence(commands, *pde.app);
}

}  // namespace lockstep::cli
