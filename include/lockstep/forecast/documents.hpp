// Results of forecast as trees of JSON, for programs with nlohmann's library; to_json() gives their texts.
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
