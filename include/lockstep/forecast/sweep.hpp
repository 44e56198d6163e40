// Early stopping in sweeps: the steps that policies would have saved, and the loss that they would have caused, on runs
// that were trained to the end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/schema.hpp"

namespace lockstep::forecast {

/// Finished runs with the same budget and their losses at common steps.
struct Sweep {
  std::vector<double> steps;
  std::vector<std::vector<double>> losses;  ///< for each run, as many as `steps`
};

struct SweepRow {
  std::string policy;
  double saved = 0;  ///< share of the steps of all runs that the policy saves
  double regret =
      0;  ///< final loss of the best run that was not stopped, divided by that of the best run, minus 1
  int stopped = 0;          ///< number of stopped runs
  int rightly_stopped = 0;  ///< number of stopped runs that are in the worse half by final loss
  double mean_stop = 1;     ///< mean share of the budget at which runs were stopped
};

struct SweepOptions {
  double check_every = 0.05;  ///< share of the budget between checks
  double first_check = 0.1;   ///< share of the budget before the first check, and at least 8 rows
};

/// Applies the policies to a sweep. A final loss is the mean of the last twentieth of the rows. Policies:
///   forecast            stops a run once its band at the end of the budget is above the expected final loss of half of
///                       the runs; half of the runs are kept to the end
///   forecast at F       stops the half of the runs with the worst expected final loss at the share F of the budget
///   last value at F     stops the half with the worst loss at that time
///   halving             successive halving (Jamieson and Talwalkar 2016): stops the worse half by loss at 1/16, 1/8, 1/4
///                       and 1/2 of the budget
///   forecast halving    the same, by expected final loss
/// A run diverges at its first loss that is not finite. It then ranks last, and `forecast` stops it. Throws InputError for
/// fewer than 4 runs, fewer than 40 rows, losses of 0 or below, unequal lengths, runs that all diverge, and invalid
/// options.
std::vector<SweepRow> stop_sweep(const Sweep& sweep, const SweepOptions& options = {});

/// Aggregates rows over sweeps: means of shares and regrets, sums of `stopped` and `rightly_stopped`.
std::vector<SweepRow> mean_rows(const std::vector<std::vector<SweepRow>>& all);

/// A synthetic sweep of 150 rows of 10 steps. Runs cycle through families of curves. Floors are 0.1 … 1.2, amplitudes
/// 0.5 … 2.5, time scales 0.6 % to 50 % of the budget. The noise is log-normal, of 0.6 % to 10 % with correlations up to
/// 0.6.
Sweep synthetic_sweep(int runs, uint64_t seed);

std::string to_json(const std::vector<SweepRow>& rows);

void describe(Schema<SweepOptions>& schema);

}  // namespace lockstep::forecast
