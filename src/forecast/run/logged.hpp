// Forecasts from logs of trainings, file to file: read, computed, written, with what the program's JSON says of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/forecast/curve.hpp"
#include "lockstep/forecast/observe.hpp"
#include "lockstep/forecast/sweep.hpp"

namespace lockstep::forecast {

/// A log (.csv, .jsonl, tfevents) and the column of its loss; empty: the first of the usual names.
struct LoggedLoss {
  std::filesystem::path file;
  std::string column;
};

struct CurveRun {
  std::string column;  // the one that was read
  size_t rows = 0;
  CurveForecast forecast;
  std::filesystem::path picture;
  std::vector<StageRecord> host_stages;
};
/// Host stage "forecast.curve". Draws log and prediction into `picture` (.png); empty: no picture.
CurveRun run_curve(const LoggedLoss& log, const CurveOptions& options,
                   const std::filesystem::path& picture = {});

struct EncodeOptions {
  int64_t history = kMostHistory;
  Storage storage = Storage::f32;
  bool normalised = false;
};
struct EncodeRun {
  std::string column;
  int64_t states = 0;
  std::vector<std::string> features, filled;  // names; what the log lacks and what stands there
  EncodeOptions options;
  std::filesystem::path out;
};
/// Stage "forecast.encode". Writes "step" and an array for each feature into `out` (.npz).
EncodeRun run_encode(Context& context, const LoggedLoss& log, const EncodeOptions& options,
                     const std::filesystem::path& out);

struct LoggedObservations {
  std::string column;
  std::vector<std::string> filled;
  ObserveRun run;
  std::filesystem::path out;
};
/// Stage "forecast.observe". Writes the model as the last row left it into `out` (.npz).
LoggedObservations run_observe(Context& context, const LoggedLoss& log, const RolloutModel& start,
                               const ObserveOptions& options, int64_t history,
                               const std::filesystem::path& out);

/// A log with a column of losses for each run of a sweep. Throws InputError where their steps differ.
Sweep read_sweep(const std::filesystem::path& file);

/// Members of the program's JSON.
std::string to_json(const CurveRun& run);
std::string to_json(const EncodeRun& run);
std::string to_json(const LoggedObservations& run);

}  // namespace lockstep::forecast
