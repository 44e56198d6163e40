// Policies on sweeps: fits are assigned over ranks, rank 0 decides which ones the policies need.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/reports/host_stage.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "forecast/curve/sweep_policies.hpp"
#include "forecast/run/sweep_checkpoint.hpp"
#include "io/series/logs/training_log.hpp"
#include "lockstep/error.hpp"
#include "lockstep/forecast/documents.hpp"
#include "lockstep/forecast/run.hpp"
#include "parallel/hand_out.hpp"

namespace lockstep::forecast {
namespace {

constexpr auto kStage = "forecast.sweep";
/// Sweeps in memory: enough that many fits are independent of each other.
constexpr int64_t kSweepsAtATime = 8;

Sweep read_sweep(const std::filesystem::path& file) {
  const io::TrainingLog log = io::read_training_log(file);
  Sweep sweep;
  const io::LogColumn* whole = nullptr;
  for (const io::LogColumn& column : log.columns)
    if (!column.diverged && !whole) whole = &log.column(column.name);
  if (!whole) throw InputError("runs that all diverge", log.where, "a run with finite losses to its end");
  sweep.steps = whole->steps;
  for (const io::LogColumn& column : log.columns) {
    const io::LogColumn& run = column.diverged ? column : log.column(column.name);
    const bool same = run.steps.size() <= sweep.steps.size() &&
                      std::equal(run.steps.begin(), run.steps.end(), sweep.steps.begin());
    if (!same || (!run.diverged && run.steps.size() < sweep.steps.size()))
      throw InputError(fmt::format("run '{}' has other steps than '{}'", run.name, whole->name), log.where,
                       "the same steps for all runs");
    sweep.losses.push_back(run.values);
    sweep.losses.back().resize(sweep.steps.size(), std::numeric_limits<double>::infinity());
  }
  return sweep;
}

/// All that a fit depends on. Numbers of sweeps and times of checks only decide which fits are computed.
record::Identity identity_of(const SweepRunOptions& options, const std::optional<Sweep>& logged) {
  record::Identity id("forecast sweep");
  id.option("check-every", options.sweep.check_every, false, Effect::extent);
  id.option("first-check", options.sweep.first_check, false, Effect::extent);
  if (logged) {
    id.array("steps", Array::of(logged->steps));
    for (size_t r = 0; r < logged->losses.size(); ++r)
      id.array(fmt::format("run-{}", r + 1), Array::of(logged->losses[r]));
  } else {
    id.option("synthetic", options.synthetic, true, Effect::extent);
    id.option("runs", options.runs);
    id.option("seed", options.seed);
  }
  return id;
}

/// The rows of these sweeps, on rank 0. Each round has the fits without which no policy can continue.
std::vector<std::vector<SweepRow>> run_policies(const parallel::Group& group,
                                                const std::vector<SweepPolicies>& sweeps, int64_t first,
                                                KeptEnds& kept) {
  std::vector<std::vector<SweepRow>> all(sweeps.size());
  for (;;) {
    std::set<SweepFit> missing;
    for (size_t s = 0; group.leads() && s < sweeps.size(); ++s)
      if (all[s].empty())
        if (auto rows = sweeps[s].rows(kept.ends(), missing)) all[s] = std::move(*rows);
    const std::vector<SweepFit> fits =
        parallel::numbers_of_lead(group, std::vector<SweepFit>(missing.begin(), missing.end()));
    if (fits.empty()) return all;
    parallel::hand_out(
        group, int64_t(fits.size()),
        [&](int64_t k) {
          const SweepFit& fit = fits[size_t(k)];
          const ExpectedEnd end = sweeps[size_t(fit.sweep - first)].compute(fit);
          return parallel::bytes_of(std::span<const ExpectedEnd>(&end, 1));
        },
        [&](int64_t k, const parallel::Bytes& bytes) {
          std::vector<ExpectedEnd> end;
          parallel::append_numbers(end, bytes);
          kept.add(fits[size_t(k)], end.at(0));
        });
  }
}

}  // namespace

SweepRun run_sweep(const SweepRunOptions& options, const parallel::Group& group) {
  const OptionList& list = schema_of<SweepRunOptions>();
  list.check(&options);
  if (options.log.empty() == (options.synthetic == 0))
    throw list.error({OptionError::Kind::conflict, "",
                      options.log.empty() ? "neither a {log} nor {synthetic}" : "a {log} and {synthetic}",
                      "one of the two", ""});
  SweepRun run;
  run.sweeps = options.log.empty() ? options.synthetic : 1;
  std::vector<std::vector<SweepRow>> all;
  host_stage(run.host_stages, kStage, [&] {
    std::optional<Sweep> logged;
    if (!options.log.empty()) logged = read_sweep(options.log);
    const record::Identity identity = identity_of(options, logged);
    if (group.size() > 1)
      group.expect_same("inputs and options",
                        fmt::format("{} in {}", identity.to_json(), options.checkpoint.string()));
    KeptEnds kept(group.leads() ? options.checkpoint : std::filesystem::path(), identity);
    run.resumed = kept.count();
    if (run.resumed > 0) logging::info("{}: {} fits are taken over from an earlier run", kStage, run.resumed);
    for (int64_t first = 0; first < run.sweeps; first += kSweepsAtATime) {
      std::vector<SweepPolicies> sweeps;
      for (int64_t k = first; k < std::min(first + kSweepsAtATime, run.sweeps); ++k)
        sweeps.emplace_back(logged ? *logged : synthetic_sweep(int(options.runs), options.seed + uint64_t(k)),
                            options.sweep, k);
      for (auto& rows : run_policies(group, sweeps, first, kept)) all.push_back(std::move(rows));
      kept.end_block();
    }
    kept.finish();
    run.computed = kept.computed();
  });
  if (group.leads()) run.rows = mean_rows(all);
  return run;
}

nlohmann::ordered_json document_of(const SweepRun& run) {
  return {{"policies", document_of(run.rows)}, {"sweeps", run.sweeps}};
}
std::string to_json(const SweepRun& run) { return json_text(document_of(run)); }

}  // namespace lockstep::forecast
