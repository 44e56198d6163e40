// Results of forecast's commands as people read them.
#pragma once

#include <string>

#include "lockstep/forecast/run.hpp"

namespace lockstep::cli {

std::string text_of(const forecast::CurveRun& run, const forecast::CurveRunOptions& options);
std::string text_of(const forecast::EncodeRun& run, const forecast::EncodeRunOptions& options);
std::string text_of(const forecast::LoggedObservations& logged, const forecast::ObserveRunOptions& options);
std::string text_of(const forecast::SweepRun& run, const forecast::SweepRunOptions& options);
std::string text_of(const forecast::ModelRollout& rollout, const forecast::RolloutRunOptions& options);
std::string text_of(const forecast::TrainResult& result, const forecast::TrainRunOptions& options);

}  // namespace lockstep::cli
