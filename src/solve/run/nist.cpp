// A reference dataset of NIST, scored in digits of its certified values.
#include "solve/datasets/nist.hpp"

#include <fmt/format.h>

#include "core/reports/json_text.hpp"
#include "lockstep/solve/documents.hpp"
#include "solve/run/common.hpp"

namespace lockstep::solve {

NistRun::NistRun() { options = nist_options(); }

NistRunResult run(Context& context, const NistRun& wanted) {
  check_run(wanted);
  if (wanted.loss.kind != RobustLoss::Kind::none)
    throw wrong<NistRun>("loss", fmt::format("'{}'", to_text(wanted.loss)),
                         "none: the certified values are those of least squares");
  NistRunResult out;
  const NistProblem nist = host_stage(out.host_stages, "read", [&] { return read_nist(wanted.file); });
  NistResult solved = solve_nist(nist, wanted.start, context, observed(wanted.options));
  out.summary = std::move(solved.summary);
  out.name = nist.name;
  out.start = wanted.start;
  out.names = nist.parameters;
  out.parameters = std::move(solved.parameters);
  out.certified = nist.certified;
  out.lre = solved.lre;
  out.residual_sum_of_squares = solved.residual_sum_of_squares;
  out.certified_residual_sum_of_squares = nist.residual_sum_of_squares;
  finish(out, wanted, fmt::format("{}, start {}", nist.name, wanted.start));
  return out;
}

nlohmann::ordered_json document_of(const NistRunResult& r) {
  return whole({{"name", r.name},
                {"start", r.start},
                {"names", r.names},
                {"parameters", r.parameters},
                {"certified", r.certified},
                {"lre", r.lre},
                {"residual_sum_of_squares", r.residual_sum_of_squares},
                {"certified_residual_sum_of_squares", r.certified_residual_sum_of_squares}},
               r);
}
std::string to_json(const NistRunResult& r) { return json_text(document_of(r)); }

std::string to_text(const NistRunResult& r) {
  std::string text =
      fmt::format("{} from start {}: {:.1f} digits of all parameters\n", r.name, r.start, r.lre);
  for (size_t k = 0; k < r.parameters.size(); ++k)
    text += fmt::format("  {:<4} {:>22.13e}  certified {:>18.10e}\n", r.names[k], r.parameters[k],
                        r.certified[k]);
  return text + fmt::format("  residual sum of squares {:.10e}, certified {:.10e}\n  {}\n",
                            r.residual_sum_of_squares, r.certified_residual_sum_of_squares,
                            outcome(r.summary));
}

}  // namespace lockstep::solve
