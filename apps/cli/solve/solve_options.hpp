// Options, progress and results that all solve commands share.
#pragma once

#include <string>

#include "lockstep/solve/run.hpp"
#include "options.hpp"
#include "session.hpp"

namespace lockstep::cli {

/// As typed. A command sets other defaults before add_solve_options(), whose help shows them.
struct SolveOptions {
  SolveOptions() = default;
  /// The library's defaults of a run.
  explicit SolveOptions(const solve::Options& defaults);

  std::string method = "lm", linear = "auto", robust = "none", precision = "f64", backend = "auto",
              damping = "diag", checkpoint, plot;
  CLI::App* app = nullptr;  // that add_solve_options() gave them to
  int64_t threshold = -1, batch_size = 0;
  int64_t max_iterations = 100, max_linear_iterations = 500;
  double function_tolerance = 1e-9, gradient_tolerance = 1e-12, parameter_tolerance = 1e-12;
  double initial_damping = 1e-4, learning_rate = 1e-2, momentum = 0, weight_decay = 0, time_limit = 0,
         graduate = 0;
  bool require_convergence = false, verbose = false;
};

/// --method, --linear, --robust and the rest of them. Numbers and names are checked while they are parsed.
void add_solve_options(CLI::App& app, SolveOptions& options);

/// --graduate, of commands that take robust losses and far starts.
void add_graduate(CLI::App& app, SolveOptions& options);

/// Refuses typed options that the method, the linear solver or the device leaves unused.
void check_solve_options(const SolveOptions& options, const CommonOptions& common);

/// --robust.
solve::RobustLoss robust_option(const SolveOptions& options);

/// Options and plot of a run. The callback keeps one status line on a terminal; the session must outlive it.
void set_run_options(Session& session, const SolveOptions& options, solve::RunOptions& run);

/// Prints a result: `text` or `json` on stdout, the report on stderr. Exit code: 1 for a minimisation that failed,
/// or that did not converge with --require-convergence, else 0.
int print_run(Session& session, const SolveOptions& options, const solve::RunResult& result,
              const std::string& text, const std::string& json);

/// A run from its options to its exit code.
template <class R>
int run_and_print(Session& session, const SolveOptions& options, R run) {
  set_run_options(session, options, run);
  const auto result = solve::run(session.context(), run);
  return print_run(session, options, result, to_text(result), to_json(result));
}

}  // namespace lockstep::cli
