// The forecaster on the run's own past: fits to the beginning, judged by what came then.
#pragma once

#include <span>

#include "forecast/curve/fit/ensemble.hpp"

namespace lockstep::forecast {

struct RollingResult {
  Backtest backtest;
  Widening widening;
};

/// `reach`: the horizon over the last step (x of the horizon); origins are judged up to as far relative to them.
RollingResult roll_origins(std::span<const double> steps, std::span<const double> losses, double reach,
                           double coverage);

/// Half the width of a band that holds `coverage` of a normal variable, in deviations.
double normal_quantile(double coverage);

}  // namespace lockstep::forecast
