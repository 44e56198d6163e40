#include "lockstep/forecast/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "forecast/curve/fit/ensemble.hpp"
#include "forecast/curve/rolling.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

constexpr size_t kLeastSweepRows = 8;
constexpr double kHalvingStart = 1.0 / 16;

/// Expected end of a run and the lower end of its band, in logarithms.
struct ExpectedEnd {
  double mean, low;
};

class SweepTrial {
 public:
  SweepTrial(const Sweep& sweep, std::string policy)
      : sweep_(sweep), policy_(std::move(policy)), stop_(sweep.losses.size(), sweep.steps.size()) {}

  std::vector<size_t> active() const {
    std::vector<size_t> runs;
    for (size_t r = 0; r < stop_.size(); ++r)
      if (stop_[r] == sweep_.steps.size()) runs.push_back(r);
    return runs;
  }
  void stop(size_t run, size_t rows) { stop_[run] = rows; }

  bool diverged(size_t run, size_t rows) const { return std::isinf(sweep_.losses[run][rows - 1]); }
  ExpectedEnd expected(size_t run, size_t rows) const {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    if (diverged(run, rows)) return {kNever, kNever};
    const auto steps = std::span(sweep_.steps).first(rows);
    const auto losses = std::span(sweep_.losses[run]).first(rows);
    const CurveEnsemble ensemble(steps, losses);
    const EnsemblePoint p = ensemble.at(sweep_.steps.back());
    return {std::log(p.mean), std::log(p.mean) - normal_quantile(0.8) * p.below};
  }
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
    double best_kept = std::numeric_limits<double>::infinity(), stops = 0;
    for (size_t r = 0; r < runs; ++r) {
      result.saved += (1 - double(stop_[r]) / double(rows)) / double(runs);
      if (stop_[r] == rows) {
        best_kept = std::min(best_kept, final_loss[r]);
        continue;
      }
      ++result.stopped;
      result.rightly_stopped += final_loss[r] > sorted[(runs + 1) / 2 - 1];
      stops += double(stop_[r]) / double(rows);
    }
    result.regret = best_kept / sorted.front() - 1;
    if (result.stopped > 0) result.mean_stop = stops / result.stopped;
    return result;
  }

 private:
  const Sweep& sweep_;
  const std::string policy_;
  std::vector<size_t> stop_;  // rows that were trained
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
SweepRow by_forecast(const Sweep& sweep, const SweepOptions& options) {
  SweepTrial trial(sweep, "forecast");
  const size_t rows = sweep.steps.size(), runs = sweep.losses.size(), kept = (runs + 1) / 2;
  std::vector<ExpectedEnd> ends(runs);
  for (double share = options.first_check; share < 1; share += options.check_every) {
    const size_t seen = std::max(size_t(double(rows) * share), kLeastSweepRows);
    for (const size_t r : trial.active())
      if (trial.diverged(r, seen))
        trial.stop(r, seen);
      else
        ends[r] = trial.expected(r, seen);
    // Stopped runs are worse than those that are left: the border is among these.
    std::vector<size_t> ranked = trial.active();
    if (ranked.size() <= kept) break;
    std::sort(ranked.begin(), ranked.end(), [&](size_t a, size_t b) { return ends[a].mean < ends[b].mean; });
    const double border = 0.5 * (ends[ranked[kept - 1]].mean + ends[ranked[kept]].mean);
    for (size_t k = kept; k < ranked.size(); ++k)
      if (ends[ranked[k]].low > border) trial.stop(ranked[k], seen);
  }
  return trial.row();
}

}  // namespace

void describe(Schema<SweepOptions>& s) {
  s.of("forecast::SweepOptions");
  s.option("check_every", &SweepOptions::check_every, "share of the budget between checks of `forecast`")
      .at_least(1e-4)
      .at_most(1)
      .in_shell(false);
  s.option("first_check", &SweepOptions::first_check, "share of the budget before the first one")
      .at_least(0)
      .at_most(1)
      .in_shell(false);
}

std::vector<SweepRow> stop_sweep(const Sweep& given, const SweepOptions& options) {
  schema_of<SweepOptions>().check(&options);
  check_sweep(given);
  const Sweep sweep = with_diverged_runs(given);
  const size_t rows = sweep.steps.size(), runs = sweep.losses.size(), kept = (runs + 1) / 2;
  std::vector<SweepRow> result = {by_forecast(sweep, options)};
  for (const bool forecast : {true, false})
    for (const double share : {0.125, 0.25, 0.5}) {
      SweepTrial trial(sweep, fmt::format("{} at {:g}", forecast ? "forecast" : "last value", share));
      const size_t seen = std::max(size_t(double(rows) * share), kLeastSweepRows);
      trial.keep_best(kept, seen, [&](size_t r) {
        return forecast ? trial.expected(r, seen).mean : trial.current(r, seen);
      });
      result.push_back(trial.row());
    }
  for (const bool forecast : {false, true}) {
    SweepTrial trial(sweep, forecast ? "forecast halving" : "halving");
    size_t left = runs;
    for (double share = kHalvingStart; share < 1 && left > 1; share *= 2) {
      const size_t seen = std::max(size_t(double(rows) * share), kLeastSweepRows);
      left = (left + 1) / 2;
      trial.keep_best(left, seen, [&](size_t r) {
        return forecast ? trial.expected(r, seen).mean : trial.current(r, seen);
      });
    }
    result.push_back(trial.row());
  }
  return result;
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
