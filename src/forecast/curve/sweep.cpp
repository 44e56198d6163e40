#include "lockstep/forecast/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "forecast/curve/fit/ensemble.hpp"
#include "forecast/curve/rolling.hpp"
#include "forecast/curve/sweep_policies.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

constexpr size_t kLeastSweepRows = 8;
constexpr double kHalvingStart = 1.0 / 16;

constexpr double kNever = std::numeric_limits<double>::infinity();

bool has_diverged(const Sweep& sweep, size_t run, size_t rows) {
  return std::isinf(sweep.losses[run][rows - 1]);
}

/// The fits of a sweep, by what is known.
struct SweepFits {
  int64_t sweep;
  const KnownEnds& known;
  std::set<SweepFit>& missing;
};

/// One policy. Once a fit is missing its decisions have no meaning.
class SweepTrial {
 public:
  SweepTrial(const Sweep& sweep, const SweepFits& fits, std::string policy)
      : sweep_(sweep),
        fits_(fits),
        policy_(std::move(policy)),
        stop_(sweep.losses.size(), sweep.steps.size()) {}

  std::vector<size_t> active() const {
    std::vector<size_t> runs;
    for (size_t r = 0; r < stop_.size(); ++r)
      if (stop_[r] == sweep_.steps.size()) runs.push_back(r);
    return runs;
  }
  void stop(size_t run, size_t rows) { stop_[run] = rows; }

  bool diverged(size_t run, size_t rows) const { return has_diverged(sweep_, run, rows); }
  ExpectedEnd expected(size_t run, size_t rows) {
    if (diverged(run, rows)) return {kNever, kNever};
    const SweepFit fit{fits_.sweep, int64_t(run), int64_t(rows)};
    if (const auto found = fits_.known.find(fit); found != fits_.known.end()) return found->second;
    fits_.missing.insert(fit);
    waits_ = true;
    return {};
  }
  /// Whether a fit is missing.
  bool waits() const { return waits_; }
  /// Mean over the last rows that were seen, as many as a final loss is taken from.
  double current(size_t run, size_t rows) const {
    const size_t n = std::min(rows, std::max<size_t>(sweep_.steps.size() / 20, 1));
    const auto end = sweep_.losses[run].begin() + ptrdiff_t(rows);
    return std::accumulate(end - ptrdiff_t(n), end, 0.0) / double(n);
  }
  /// Stops the runs with the greatest scores, down to `kept`.
  template <class Score>
  void keep_best(size_t kept, size_t rows, Score score) {
    std::vector<std::pair<double, size_t>> ranked;
    for (const size_t r : active()) ranked.emplace_back(score(r), r);
    if (waits_) return;
    std::sort(ranked.begin(), ranked.end());
    for (size_t k = kept; k < ranked.size(); ++k) stop(ranked[k].second, rows);
  }

  SweepRow row() const {
    const size_t runs = stop_.size(), rows = sweep_.steps.size();
    std::vector<double> final_loss;
    for (size_t r = 0; r < runs; ++r) final_loss.push_back(current(r, rows));
    std::vector<double> sorted = final_loss;
    std::sort(sorted.begin(), sorted.end());
    SweepRow result{.policy = policy_};
    double best_kept = kNever, stops = 0;
    for (size_t r = 0; r < runs; ++r) {
      result.saved += (1 - double(stop_[r]) / double(rows)) / double(runs);
      if (stop_[r] == rows) {
        best_kept = std::min(best_kept, final_loss[r]);
        continue;
      }
      ++result.stopped;
      // Runs that diverge are of the worse half, also where they are more than half.
      result.rightly_stopped += final_loss[r] > sorted[(runs + 1) / 2 - 1] || std::isinf(final_loss[r]);
      stops += double(stop_[r]) / double(rows);
    }
    result.regret = best_kept / sorted.front() - 1;
    if (result.stopped > 0) result.mean_stop = stops / result.stopped;
    return result;
  }

 private:
  const Sweep& sweep_;
  const SweepFits fits_;
  const std::string policy_;
  std::vector<size_t> stop_;  // rows that were trained
  bool waits_ = false;
};

void check_sweep(const Sweep& s) {
  if (s.losses.size() < 4) throw InputError(fmt::format("{} runs", s.losses.size()), "sweep", "at least 4");
  if (s.steps.size() < 40) throw InputError(fmt::format("{} rows", s.steps.size()), "sweep", "at least 40");
  for (size_t r = 0; r < s.losses.size(); ++r) {
    if (s.losses[r].size() != s.steps.size())
      throw InputError(fmt::format("{} losses of run {}", s.losses[r].size(), r + 1), "sweep",
                       fmt::format("{}, as many as steps", s.steps.size()));
    for (const double loss : s.losses[r])
      if (loss <= 0)
        throw InputError(fmt::format("a loss of {} in run {}", loss, r + 1), "sweep", "positive numbers");
  }
  if (std::none_of(s.losses.begin(), s.losses.end(), [](const auto& run) {
        return std::all_of(run.begin(), run.end(), [](double loss) { return std::isfinite(loss); });
      }))
    throw InputError("runs that all diverge", "sweep", "a run with finite losses to its end");
}

/// From its first loss that is not finite on a run is worse than all others.
Sweep with_diverged_runs(Sweep sweep) {
  for (std::vector<double>& run : sweep.losses) {
    const auto first = std::find_if(run.begin(), run.end(), [](double loss) { return !std::isfinite(loss); });
    std::fill(first, run.end(), std::numeric_limits<double>::infinity());
  }
  return sweep;
}

// The time of each run's stop is the forecast's own.
SweepTrial by_forecast(const Sweep& sweep, const SweepFits& fits, const SweepOptions& options) {
  SweepTrial trial(sweep, fits, "forecast");
  const size_t rows = sweep.steps.size(), runs = sweep.losses.size(), kept = (runs + 1) / 2;
  std::vector<ExpectedEnd> ends(runs);
  for (double share = options.first_check; share < 1; share += options.check_every) {
    const size_t seen = std::max(size_t(double(rows) * share), kLeastSweepRows);
    for (const size_t r : trial.active())
      if (trial.diverged(r, seen))
        trial.stop(r, seen);
      else
        ends[r] = trial.expected(r, seen);
    if (trial.waits()) break;
    // Stopped runs are worse than those that are left: the border is among these.
    std::vector<size_t> ranked = trial.active();
    if (ranked.size() <= kept) break;
    std::sort(ranked.begin(), ranked.end(), [&](size_t a, size_t b) { return ends[a].mean < ends[b].mean; });
    const double border = 0.5 * (ends[ranked[kept - 1]].mean + ends[ranked[kept]].mean);
    for (size_t k = kept; k < ranked.size(); ++k)
      if (ends[ranked[k]].low > border) trial.stop(ranked[k], seen);
  }
  return trial;
}

/// The better half of the runs is kept at this share of the budget.
SweepTrial by_half(const Sweep& sweep, const SweepFits& fits, bool forecast, double share) {
  SweepTrial trial(sweep, fits, fmt::format("{} at {:g}", forecast ? "forecast" : "last value", share));
  const size_t seen = std::max(size_t(double(sweep.steps.size()) * share), kLeastSweepRows);
  trial.keep_best((sweep.losses.size() + 1) / 2, seen,
                  [&](size_t r) { return forecast ? trial.expected(r, seen).mean : trial.current(r, seen); });
  return trial;
}

SweepTrial by_halving(const Sweep& sweep, const SweepFits& fits, bool forecast) {
  SweepTrial trial(sweep, fits, forecast ? "forecast halving" : "halving");
  size_t left = sweep.losses.size();
  for (double share = kHalvingStart; share < 1 && left > 1 && !trial.waits(); share *= 2) {
    const size_t seen = std::max(size_t(double(sweep.steps.size()) * share), kLeastSweepRows);
    left = (left + 1) / 2;
    trial.keep_best(left, seen, [&](size_t r) {
      return forecast ? trial.expected(r, seen).mean : trial.current(r, seen);
    });
  }
  return trial;
}

}  // namespace

void describe(Schema<SweepOptions>& s) {
  s.of("forecast::SweepOptions");
  s.option("check_every", &SweepOptions::check_every, "share of the budget between checks of `forecast`")
      .at_least(1e-4)
      .at_most(1)
      .in_shell(false);
  s.option("first_check", &SweepOptions::first_check, "share of the budget before the first check")
      .at_least(0)
      .at_most(1)
      .in_shell(false);
}

SweepPolicies::SweepPolicies(const Sweep& sweep, const SweepOptions& options, int64_t number)
    : options_(options), number_(number) {
  schema_of<SweepOptions>().check(&options);
  check_sweep(sweep);
  sweep_ = with_diverged_runs(sweep);
}

ExpectedEnd SweepPolicies::compute(const SweepFit& fit) const {
  const auto steps = std::span(sweep_.steps).first(size_t(fit.rows));
  const auto losses = std::span(sweep_.losses[size_t(fit.run)]).first(size_t(fit.rows));
  const CurveEnsemble ensemble(steps, losses);
  const EnsemblePoint p = ensemble.at(sweep_.steps.back());
  return {std::log(p.mean), std::log(p.mean) - normal_quantile(0.8) * p.below};
}

std::optional<std::vector<SweepRow>> SweepPolicies::rows(const KnownEnds& known,
                                                         std::set<SweepFit>& missing) const {
  const SweepFits fits{number_, known, missing};
  std::vector<SweepTrial> trials = {by_forecast(sweep_, fits, options_)};
  for (const bool forecast : {true, false})
    for (const double share : {0.125, 0.25, 0.5}) trials.push_back(by_half(sweep_, fits, forecast, share));
  for (const bool forecast : {false, true}) trials.push_back(by_halving(sweep_, fits, forecast));
  std::vector<SweepRow> rows;
  for (const SweepTrial& trial : trials) {
    if (trial.waits()) return {};
    rows.push_back(trial.row());
  }
  return rows;
}

std::vector<SweepRow> stop_sweep(const Sweep& sweep, const SweepOptions& options) {
  const SweepPolicies policies(sweep, options);
  KnownEnds known;
  for (;;) {
    std::set<SweepFit> missing;
    if (const auto rows = policies.rows(known, missing)) return *rows;
    for (const SweepFit& fit : missing) known[fit] = policies.compute(fit);
  }
}

std::vector<SweepRow> mean_rows(const std::vector<std::vector<SweepRow>>& all) {
  if (all.empty()) return {};
  std::vector<SweepRow> mean = all.front();
  for (size_t k = 0; k < mean.size(); ++k) {
    SweepRow& m = mean[k];
    const std::string policy = m.policy;
    m = {.policy = policy};
    double stops = 0;
    for (const auto& rows : all) {
      m.saved += rows[k].saved / double(all.size());
      m.regret += rows[k].regret / double(all.size());
      m.stopped += rows[k].stopped;
      m.rightly_stopped += rows[k].rightly_stopped;
      stops += rows[k].mean_stop * rows[k].stopped;
    }
    if (m.stopped > 0) m.mean_stop = stops / m.stopped;
  }
  return mean;
}

}  // namespace lockstep::forecast
