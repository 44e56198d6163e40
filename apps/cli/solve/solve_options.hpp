// Options, progress and results that all solve commands share.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "lockstep/solve.hpp"
#include "options.hpp"
#include "session.hpp"

namespace lockstep::cli {

/// As typed. A command sets other defaults before add_solve_options(), whose help shows them.
struct SolveOptions {
  std::string method = "lm", linear = "auto", robust = "none", precision = "f64", backend = "auto",
              damping = "diag", checkpoint, plot;
  CLI::App* app = nullptr;  // that add_solve_options() gave them to
  int64_t threshold = -1, batch_size = 0;
  int64_t max_iterations = 100, max_linear_iterations = 500;
  double function_tolerance = 1e-9, gradient_tolerance = 1e-12, parameter_tolerance = 1e-12;
  double initial_damping = 1e-4, learning_rate = 1e-2, momentum = 0, weight_decay = 0;
  bool require_convergence = false, verbose = false;
};
/// Whether an option was typed, or stood in --config.
bool given(const CLI::App& app, const std::string& option);
/// Refuses typed options that the method, the linear solver or the device leaves unused, and files in folders that
/// are not there.
void check_solve_options(const SolveOptions& options, const CommonOptions& common);
/// Throws InputError where the folder of a file to be written is missing.
void check_folder(const std::string& file, const std::string& option);

/// --method, --linear, --robust and the rest of them. Numbers and names are checked while they are parsed.
void add_solve_options(CLI::App& app, SolveOptions& options);

/// --robust.
solve::RobustLoss robust_option(const SolveOptions& options);

/// The options of solve::minimize(). Their callback keeps one status line on a terminal, writes a line per
/// iteration to the telemetry, and calls `each`, which may stop the minimisation; the session must outlive
/// it.
solve::Options minimize_options(Session& session, const SolveOptions& options,
                                const std::function<bool(const solve::Iteration&)>& each = {});

/// solve::minimize() with the session's context and those options.
solve::Summary run_solve(Session& session, solve::Problem& problem, const SolveOptions& options,
                         const std::function<bool(const solve::Iteration&)>& each = {});

/// Adds the members of the command line's contract and the trace to `document`, writes --plot (titled
/// `title`), prints `text` or the document, and the report on stderr. Exit code: 1 for a minimisation that
/// did not converge with --require-convergence, else 0.
int finish_solve(Session& session, const SolveOptions& options, const solve::Summary& summary,
                 nlohmann::ordered_json document, const std::string& text, std::string_view title);

/// "cost 851000 to 13344.3 in 31 iterations (function_tolerance)".
std::string outcome(const solve::Summary& summary);

}  // namespace lockstep::cli
