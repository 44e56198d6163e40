// `lockstep pde`: each command is one call of the library.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>

#include "bound_call.hpp"
#include "core/reports/log.hpp"
#include "core/reports/progress.hpp"
#include "lockstep/pde/documents.hpp"
#include "pde_text.hpp"

namespace lockstep::cli {
namespace {

constexpr size_t kRulesOnALine = 105;

template <class Options>
int run_loss(Session& session, Options options) {
  options.run.any_path = !session.options().no_fallback;
  const auto run = session.on_lead(
      [&](Context& context, const parallel::Group& group) { return pde::run(context, options, group); });
  if (!run) return 0;
  if (!run->result.path_refused.empty())
    logging::line(fmt::format("{}; two-kernel is used", run->result.path_refused));
  show(session, *run, text_of(*run));
  return 0;
}

int run_pde_check(Session& session, const pde::CheckRunOptions& options) {
  const pde::CheckResult result = pde::run(session.context(), options);
  show(session, result, text_of(result));
  return result.passed() ? 0 : 1;
}

int run_study(Session& session, const pde::StudyOptions& options) {
  const Device device = session.open_device();
  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress;
  const pde::StudyResult result = pde::run_study(device, options, [&](int64_t done, int64_t rows) {
    if (!progress) progress.emplace("pde study", rows);
    progress->set(done);
  });
  progress.reset();
  const DeviceCounters counters = device.counters();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  session.note({"pde.study", result.device, seconds, counters.bytes_to_device, counters.bytes_from_device,
                counters.launches, 0});
  session.note_device(result.device, counters.peak_bytes);
  show(session, result, text_of(result));
  return 0;
}

int run_example(Session& session, pde::ExampleOptions options) {
  std::optional<Progress> progress;
  options.progress = [&](int64_t, int64_t windows) {
    if (!progress) progress.emplace("pde example " + options.name, windows, "windows");
    progress->add();
  };
  const pde::ExampleResult result = pde::run_example(session.context(), options);
  progress.reset();
  show(session, result, text_of(result));
  if (result.converged()) return 0;
  logging::error("{} of {} windows did not converge: try more --iterations",
                 result.train.windows - result.train.converged, result.train.windows);
  return 1;
}

int run_convergence(Session& session, const pde::ConvergenceOptions& options) {
  const pde::ConvergenceResult result = pde::run_convergence(session.context(), options);
  show(session, result, text_of(result));
  return 0;
}

}  // namespace

void add_pde(CommandList& commands, CLI::App& root) {
  Command& pde = add_command(commands, root, "pde", "losses of PDE residuals with exact gradients");
  std::string rules = pde::boundary_rules();
  if (const size_t comma = rules.rfind(", ", kRulesOnALine); comma != std::string::npos)
    rules[comma + 1] = '\n';
  set_footer(
      *pde.app,
      "Input of loss and check: sigma0 sigma1 sigma2 (nz,ny,nx), u0 u1 u2 (3,nz,ny,nx; component 0 = "
      "x), f4 or "
      "f8, optional mask (nz,ny,nx);\n"
      "of trajectory: sigma (T,nz,ny,nx), u (T,3,nz,ny,nx).\n"
      "Boundaries: " +
          rules +
          "; for all, by axis (x=…) or by end of an axis (x-=…, x+=…).\n"
          "A value may be a name, dirichlet_face:@lid: of --parameters, or an array lid of the input: a "
          "number (), a\n"
          "profile (nz,ny) on a boundary of x, (nz,nx) of y, (ny,nx) of z; of a trajectory also one each "
          "level, (T,) and (T,…).\n"
          "Their derivatives go to d_lid of --out.\n"
          "Example:\n  lockstep pde loss frames.npz --spacing 0.1,0.1,0.1 --dt 0.05 --out gradients.npz");
  add_call<pde::LossRunOptions>(commands, *pde.app, "loss", "loss and gradients of three time levels",
                                "lockstep pde loss frames.npz --spacing 0.1,0.1,0.1 --dt 0.05 --boundary "
                                "x=no_slip,z=clamp --out gradients.npz",
                                &run_loss<pde::LossRunOptions>, Ranks::several);
  add_call<pde::TrajectoryRunOptions>(
      commands, *pde.app, "trajectory", "loss and gradients of T time levels in one run",
      "lockstep pde trajectory run.npz --spacing 0.1,0.1,0.1 --dt 0.05 --out gradients.npz",
      &run_loss<pde::TrajectoryRunOptions>, Ranks::several);
  add_call<pde::CheckRunOptions>(
      commands, *pde.app, "check",
      "compare residuals, gradients and Jacobian products with complex steps and with each other",
      "lockstep pde check frames.npz --spacing 0.1,0.1,0.1 --dt 0.05 --boundary x=no_slip,z=clamp",
      &run_pde_check);
  add_call<pde::StudyOptions>(commands, *pde.app, "study",
                              "measure times over sizes, boundaries, kernels and orders",
                              "lockstep pde study --sizes 64,128 --csv study.csv", &run_study);
  add_call<pde::ExampleOptions>(commands, *pde.app, "example",
                                "solve a shipped equation by the gradients of its residuals",
                                "lockstep pde example gray_scott --out out", &run_example);
  add_call<pde::ConvergenceOptions>(commands, *pde.app, "convergence",
                                    "compute residuals of exact solutions for several cell sizes",
                                    "lockstep pde convergence --out convergence.svg", &run_convergence);
}

}  // namespace lockstep::cli
