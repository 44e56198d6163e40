// Policies on a finished sweep, as far as the fits that they ask for are known.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "lockstep/forecast/sweep.hpp"

namespace lockstep::forecast {

/// A fit to the first rows of a run, of one of several sweeps.
struct SweepFit {
  int64_t sweep = 0, run = 0, rows = 0;
  auto operator<=>(const SweepFit&) const = default;
};
/// The end that a fit expects and the lower end of its band, in logarithms.
struct ExpectedEnd {
  double mean = 0, low = 0;
};
using KnownEnds = std::map<SweepFit, ExpectedEnd>;

class SweepPolicies {
 public:
  /// Throws InputError as stop_sweep(). `number`: of the sweep in fits.
  SweepPolicies(const Sweep& sweep, const SweepOptions& options, int64_t number = 0);

  ExpectedEnd compute(const SweepFit& fit) const;
  /// A row for each policy. Nothing while fits that policies ask for are not known; they are added to `missing`.
  std::optional<std::vector<SweepRow>> rows(const KnownEnds& known, std::set<SweepFit>& missing) const;

 private:
  Sweep sweep_;
  SweepOptions options_;
  int64_t number_;
};

}  // namespace lockstep::forecast
