// Results of urban as JSON trees of the nlohmann library, if a program has it. to_json() returns the same as text.
#pragma once

#if __has_include(<nlohmann/json_fwd.hpp>)

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace lockstep::urban {

struct AreaStatisticsResult;
struct CompareResult;
struct Gate;
struct InputCheck;
struct PetResult;
struct PlantResult;
struct QuirkEffect;
struct RunResult;
struct SampleRunResult;
struct SeriesResult;
struct ShadowRunResult;
struct SkyRunResult;
struct Stage;
struct StageRun;
struct SunlightResult;
struct UmepExchange;
struct UtciResult;
struct ValidationResult;

nlohmann::ordered_json document_of(const RunResult& result);
nlohmann::ordered_json document_of(const ShadowRunResult& result);
nlohmann::ordered_json document_of(const SkyRunResult& result);
nlohmann::ordered_json document_of(const SampleRunResult& result);
nlohmann::ordered_json document_of(const SeriesResult& result);
nlohmann::ordered_json document_of(const ValidationResult& result);
nlohmann::ordered_json document_of(const std::vector<Gate>& results);
nlohmann::ordered_json document_of(const std::vector<QuirkEffect>& results);
nlohmann::ordered_json document_of(const std::vector<InputCheck>& results);
nlohmann::ordered_json document_of(const UmepExchange& result);
nlohmann::ordered_json document_of(const CompareResult& result);
nlohmann::ordered_json document_of(const AreaStatisticsResult& result);
nlohmann::ordered_json document_of(const SunlightResult& result);
nlohmann::ordered_json document_of(const PlantResult& result);
nlohmann::ordered_json document_of(const StageRun& result);
nlohmann::ordered_json document_of(const std::vector<Stage>& results);
nlohmann::ordered_json document_of(const UtciResult& result);
nlohmann::ordered_json document_of(const PetResult& result);

}  // namespace lockstep::urban

#endif
