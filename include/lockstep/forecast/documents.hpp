// Results of forecast as JSON trees of the nlohmann library, if a program has it. to_json() returns the same as text.
#pragma once

#if __has_include(<nlohmann/json_fwd.hpp>)

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace lockstep::forecast {

struct CurveForecast;
struct CurveRun;
struct EncodeRun;
struct LoggedObservations;
struct ModelRollout;
struct ObserveRun;
struct RolloutRun;
struct SweepRow;
struct SweepRun;
struct TrainResult;

nlohmann::ordered_json document_of(const CurveForecast& result);
nlohmann::ordered_json document_of(const std::vector<SweepRow>& results);
nlohmann::ordered_json document_of(const RolloutRun& result);
nlohmann::ordered_json document_of(const ObserveRun& result);
nlohmann::ordered_json document_of(const TrainResult& result);
nlohmann::ordered_json document_of(const CurveRun& result);
nlohmann::ordered_json document_of(const EncodeRun& result);
nlohmann::ordered_json document_of(const LoggedObservations& result);
nlohmann::ordered_json document_of(const SweepRun& result);
nlohmann::ordered_json document_of(const ModelRollout& result);

}  // namespace lockstep::forecast

#endif
