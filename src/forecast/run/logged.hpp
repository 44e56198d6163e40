// Forecasts of logs that are in memory, as pages have them; the commands read theirs from files.
#pragma once

#include "io/series/logs/training_log.hpp"
#include "lockstep/forecast/run.hpp"

namespace lockstep::forecast {

/// As run_curve() and run_observe() of the options' files, from `log` and the weights `start`.
CurveRun run_curve(const io::TrainingLog& log, const CurveRunOptions& options);
LoggedObservations run_observe(Context& context, const io::TrainingLog& log, const RolloutModel& start,
                               const ObserveRunOptions& options);

}  // namespace lockstep::forecast
