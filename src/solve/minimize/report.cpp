// Names and the summary as text.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/solve/run.hpp"

namespace lockstep::solve {

bool converged(Termination termination) {
  return termination == Termination::function_tolerance || termination == Termination::gradient_tolerance ||
         termination == Termination::parameter_tolerance;
}

std::string report(const Summary& summary) { return report(summary, 10); }

std::string report(const Summary& summary, int rows) {
  std::string out = "Solver summary\n\n";
  const auto line = [&](const char* what, const std::string& value) {
    out += fmt::format("{:<24}{:>24}\n", what, value);
  };
  const bool linear = summary.method == Method::lm || summary.method == Method::gn ||
                      summary.method == Method::dogleg || summary.method == Method::newton;
  line("Residuals", fmt::format("{}", summary.residuals));
  line("Variables", fmt::format("{}", summary.variables));
  line("Topologies", fmt::format("{}", summary.kernels));
  line("Batches", fmt::format("{}", summary.batches.size()));
  line("Kernels compiled, cached", fmt::format("{}, {}", summary.kernels_compiled, summary.cache_hits));
  line("Method", std::string(name(summary.method)));
  line("Precision", std::string(name(summary.precision)));
  line("Device", summary.device);
  if (linear) {
    out += fmt::format("\n{:<24}{:>24}{:>24}\n", "", "Given", "Used");
    out += fmt::format("{:<24}{:>24}{:>24}\n", "Linear solver", name(summary.linear_given),
                       name(summary.linear_used));
  }
  out += "\nCost:\n";
  line("Initial", fmt::format("{:.6e}", summary.initial_cost));
  line("Final", fmt::format("{:.6e}", summary.final_cost));
  line("Change", fmt::format("{:.6e}", summary.initial_cost - summary.final_cost));
  int accepted = 0;
  for (const Iteration& row : summary.trace) accepted += row.accepted;
  out += "\n";
  line("Iterations", fmt::format("{}", summary.iterations));
  line("Accepted steps", fmt::format("{}", accepted));
  line("Refused steps", fmt::format("{}", int(summary.trace.size()) - accepted));
  if (linear) line("Linear iterations", fmt::format("{}", summary.linear_iterations));
  line("Largest gradient", fmt::format("{:.6e}", summary.gradient_max));
  out += "\nTime (seconds):\n";
  const auto time = [&](const char* label, const char* part) {
    const auto found = summary.seconds.find(part);
    if (found != summary.seconds.end()) line(label, fmt::format("{:.6f}", found->second));
  };
  time("Evaluation", "evaluate");
  time("Linear solver", "linear");
  time("Other", "step");
  time("Total", "total");
  out += fmt::format("\nTermination: {} ({}{}{})\n",
                     converged(summary.termination) ? "CONVERGENCE" : "NO_CONVERGENCE",
                     name(summary.termination), summary.message.empty() ? "" : ": ", summary.message);
  for (const std::string& note : summary.notes) out += fmt::format("Note: {}\n", note);
  if (summary.trace.empty()) return out;
  out += fmt::format("\n{:>5} {:>14} {:>11} {:>11} {:>11} {:>10} {:>10} {:>6} {:>9}\n", "iter", "cost",
                     "change", "|gradient|", "|step|", "gain", "damping", "linear", "seconds");
  const size_t count = summary.trace.size(), most = size_t(std::max(rows, 0));
  const size_t first = count <= most ? count : most - most / 2;
  for (size_t k = 0; k < count; ++k) {
    if (k == first && count > most) {
      out += fmt::format("{:>5} {} iterations\n", "…", count - most);
      k = count - most / 2;
      if (k == count) break;
    }
    const Iteration& row = summary.trace[k];
    out += fmt::format("{:>5} {:>14.6e} {:>11.2e} {:>11.2e} {:>11.2e} {:>10.2e} {:>10.2e} {:>6} {:>9.3f}{}\n",
                       row.iteration, row.cost, row.cost_change, row.gradient_max, row.step_norm, row.gain,
                       row.damping, row.linear_iterations, row.seconds, row.accepted ? "" : "  rejected");
  }
  return out;
}

}  // namespace lockstep::solve
