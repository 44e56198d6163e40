// `lockstep solve`: each command is one run of the library.
#include <fmt/format.h>

#include <limits>
#include <memory>

#include "bound_call.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "lockstep/solve/doctor.hpp"
#include "lockstep/solve/documents.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::cli {
namespace {

/// The line that shows how far a minimisation has come; it goes with the options that hold it.
class StatusLine {
 public:
  explicit StatusLine(bool shown) : shown_(shown && logging::is_terminal()) {}
  ~StatusLine() {
    if (shown_) logging::set_status("");
  }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  void show(const solve::Iteration& i) const {
    if (shown_)
      logging::set_status(fmt::format("iteration {:>4}  cost {:.6e}  gradient {:.1e}  step {:.1e}  {:.1f} s",
                                      i.iteration, i.cost, i.gradient_max, i.step_norm, i.seconds));
  }

 private:
  const bool shown_;
};

/// A device that is named is used: nothing chooses between it and the CPU.
void place(const Command& command, solve::Options& o) {
  if (command.common.device == "auto" || o.backend != solve::Placement::automatic) return;
  for (const char* option : {"backend", "threshold"})
    if (command.bound->given.contains(option))
      throw command.bound->list->error({OptionError::Kind::useless, option,
                                        "it has no effect with --device " + command.common.device,
                                        "--device auto", ""});
  o.backend = solve::Placement::gpu;
}

/// Exit code: 1 for a minimisation that failed, or that did not converge although it must.
template <class Result>
int print_run(Session& session, const Command& command, const Result& result) {
  const solve::Summary& summary = result.summary;
  if (!session.options().quiet)
    logging::line(solve::report(summary, asked(command, "verbose") ? std::numeric_limits<int>::max() : 10));
  const bool broken = summary.termination == solve::Termination::failure,
             failed =
                 broken || (asked(command, "require_convergence") && !solve::converged(summary.termination));
  const std::string why = summary.message.empty() ? "" : ": " + summary.message;
  if (broken)
    logging::line(
        fmt::format("lockstep: error: the minimisation failed{} [{}]: expected values and derivatives that "
                    "are finite, and matrices that are not singular",
                    why, command_path(*command.app)));
  else if (failed)
    logging::line(fmt::format(
        "lockstep: error: not converged: {}{} [--require-convergence]: expected a tolerance that is met",
        solve::name(summary.termination), why));
  show(session, result, to_text(result));
  return failed ? 1 : 0;
}

template <class Run>
int run_and_print(const Command& command, Session& session, Run run) {
  place(command, run.options);
  const auto status = std::make_shared<StatusLine>(!command.common.quiet);
  run.options.callback = [status](const solve::Iteration& i) {
    status->show(i);
    return true;
  };
  return print_run(session, command, solve::run(session.context(), run));
}

/// The same over ranks: rank 0 shows and writes.
template <class Run>
int run_over_ranks(const Command& command, Session& session, Run run) {
  place(command, run.options);
  const auto status = std::make_shared<StatusLine>(!command.common.quiet);
  const auto result = session.on_lead([&](Context& context, const parallel::Group& group) {
    Run own = run;
    own.options.ranks = group;
    own.options.callback = [&status](const solve::Iteration& i) {
      status->show(i);
      return true;
    };
    return solve::run(context, own);
  });
  return result ? print_run(session, command, *result) : 0;
}

template <class Run>
void add_run(CommandList& commands, Command& parent, const char* name, const char* help, const char* example,
             Ranks ranks = Ranks::one) {
  Command& command = add_call<Run>(commands, *parent.app, name, help, example,
                                   ranks == Ranks::one ? run_and_print<Run> : run_over_ranks<Run>, ranks);
  static_cast<Run*>(command.bound->options)->options.backend = solve::Placement::automatic;
}

}  // namespace

void add_solve(CommandList& commands, CLI::App& root) {
  Command& solve =
      add_command(commands, root, "solve",
                  "nonlinear least squares: fits, pose graphs, bundle adjustment, meshes, sketches");
  set_footer(*solve.app,
             "Example:\n  lockstep solve g2o sphere2500.g2o --linear cholesky --plot convergence.png");
  add_run<solve::NistRun>(commands, solve, "nist",
                          "fit a NIST reference dataset and count the certified digits",
                          "lockstep solve nist Misra1a.dat --start 2 --json");
  add_run<solve::PoseGraphRun>(commands, solve, "g2o", "optimise a pose graph in 2 or 3 dimensions",
                               "lockstep solve g2o sphere2500.g2o --linear cholesky --out solved.g2o",
                               Ranks::several);
  add_run<solve::BundleRun>(commands, solve, "bal", "bundle adjustment: cameras and points from pixels",
                            "lockstep solve bal problem-49-7776-pre.txt --linear schur-pcg --ply scene.ply",
                            Ranks::several);
  add_run<solve::FitRun>(
      commands, solve, "fit", "fit a formula to columns of a table, with standard errors",
      "lockstep solve fit decay.csv --model \"a*exp(-b*t) + c\" --y count --bounds b=0:inf --picture "
      "decay.png");
  add_run<solve::MeshRun>(
      commands, solve, "mesh", "minimise an energy of a triangle mesh",
      "lockstep solve mesh bar:6x36 --energy arap --fix \"z<=0\" --handle \"z>=100%@0,0,1,120\" --out "
      "twisted.obj --picture twisted.png");
  add_run<solve::SketchRun>(commands, solve, "sketch", "solve points, lines and circles under constraints",
                            "lockstep solve sketch examples/sketches/bracket.toml --out bracket.svg");
  add_call<solve::DoctorRun>(commands, *solve.app, "doctor",
                             "diagnose a problem: gauges, disconnected parts, residuals without effect, "
                             "duplicates, outliers, leverage",
                             "lockstep solve doctor sphere2500.g2o --json",
                             [](Session& session, const solve::DoctorRun& run) {
                               const solve::DoctorResult result = solve::run(session.context(), run);
                               show(session, result, to_text(result));
                               return 0;
                             });
}

}  // namespace lockstep::cli
