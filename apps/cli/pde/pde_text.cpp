// Results of pde's commands as people read them.
#include "pde_text.hpp"

#include <fmt/format.h>

namespace lockstep::cli {
namespace {

std::string row_text(const pde::StudyRow& row) {
  const std::string name = fmt::format("{:>12} {:<44} {:<10} {:<14} order {}", row.size, row.boundary,
                                       row.kernel, row.tile, row.order);
  if (!row.skipped.empty()) return fmt::format("{}: {}\n", name, row.skipped);
  return fmt::format("{} {:<4}: {:9.4f} ms {:8.1f} GB/s {:5.1f} % of copy\n", name, row.gradients,
                     row.median_ms, row.gbps, 100 * row.share_of_copy);
}

}  // namespace

std::string text_of(const pde::FileRun& run) {
  const pde::RunResult& result = run.result;
  std::string text = fmt::format("loss {:.9g}\n", result.loss);
  for (const auto& [name, value] : result.terms) text += fmt::format("  {} {:.9g}\n", name, value);
  for (const auto& [name, slope] : result.by_number) text += fmt::format("  by {} {:.9g}\n", name, slope);
  if (!run.out.empty()) text += fmt::format("gradients: {}\n", run.out.string());
  if (!run.residuals.empty()) text += fmt::format("residual fields: {}\n", run.residuals.string());
  return text;
}

std::string text_of(const pde::CheckResult& result) {
  std::string text = fmt::format("{:<40} {:>9} {:>9}\n", "compared", "error", "bound");
  for (const pde::CheckRow& row : result.rows)
    text += fmt::format("{:<40} {:>9.2g} {:>9.2g}{}\n", row.what, row.error, row.bound,
                        row.passed() ? "" : "  over its bound");
  return text;
}

std::string text_of(const pde::StudyResult& result) {
  std::string text = fmt::format("copy {:.1f} GB/s on {}\n", result.copy_gbps, result.device);
  for (const pde::StudyRow& row : result.rows) text += row_text(row);
  return text;
}

std::string text_of(const pde::ExampleResult& result) {
  const pde::TrainResult& train = result.train;
  return fmt::format("{}: {}\n{}, {} iterations; loss of the last {:.4g} -> {:.4g}\npicture: {}\n",
                     result.name, result.description,
                     result.levels ? fmt::format("{} windows of {} levels", train.windows, result.levels)
                                   : std::string("steady"),
                     train.iterations, train.losses_first.back(), train.losses_last.back(),
                     result.picture.string());
}

std::string text_of(const pde::ConvergenceResult& result) {
  std::string text;
  for (const pde::ConvergenceSlope& s : result.slopes)
    text += fmt::format("{:<9} order {}: observed {:.3f}\n", s.field, s.order, s.observed);
  return text;
}

}  // namespace lockstep::cli
