// Early stopping in sweeps: what policies would have saved and lost, on runs that were trained to the end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/schema.hpp"

namespace lockstep::forecast {

/// Finished runs with the same budget: a loss per row and run, at common steps.
struct Sweep {
  std::vector<double> steps;
  std::vector<std::vector<double>> losses;  ///< a run each, as long as `steps`
};

struct SweepRow {
  std::string policy;
  double saved = 0;   ///< share of the steps of all runs that were saved
  double regret = 0;  ///< final loss of the best remaining run divided by that of the best of all, minus 1
  int stopped = 0;    ///< number of stopped runs
  int rightly_stopped = 0;  ///< number of these in the worse half by final loss
  double mean_stop = 1;     ///< share of the budget at which they were stopped
};

struct SweepOptions {
  double check_every = 0.05;  ///< of the budget
  double first_check = 0.1;   ///< of the budget, and at least 8 rows
};

/// A final loss is the mean of the last twentieth of the rows. Policies:
///   forecast            a run is stopped once its band at the end of the budget lies above what half of the runs are
///                       expected to end below, with half the runs kept to the end
///   forecast at F       the half of the runs with the worst expected end is stopped at F of the budget
///   last value at F     the half with the worst loss at that time
///   halving             successive halving from 1/16 of the budget: the worse half by loss at 1/16, 1/8, 1/4, 1/2
///   forecast halving    the same rungs, by the expected end
/// A run diverges at its first loss that is not finite: it ranks last from there, and `forecast` stops it. Throws
/// InputError for fewer than 4 runs, fewer than 40 rows, losses of 0 or below, unequal lengths, runs that all
/// diverge, and invalid options.
std::vector<SweepRow> stop_sweep(const Sweep& sweep, const SweepOptions& options = {});

/// Aggregates over sweeps: means of shares and regrets, sums of `stopped`.
std::vector<SweepRow> mean_rows(const std::vector<std::vector<SweepRow>>& all);

/// A synthetic sweep: families of curves in turn, floors 0.1 … 1.2, amplitudes 0.5 … 2.5, time scales of 0.6 % to half
/// of the budget, log-normal noise of 0.6 % to 10 % with correlations up to 0.6; 150 rows of 10 steps.
Sweep synthetic_sweep(int runs, uint64_t seed);

std::string to_json(const std::vector<SweepRow>& rows);

void describe(Schema<SweepOptions>& schema);

}  // namespace lockstep::forecast
