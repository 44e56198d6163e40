// The results of runs as JSON, with the members that specs and scripts rely on.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lockstep/urban/comfort.hpp"
#include "lockstep/urban/exchange.hpp"
#include "lockstep/urban/series.hpp"
#include "lockstep/urban/stages.hpp"

namespace lockstep::urban {

nlohmann::ordered_json to_json(const WallRunResult& result);
nlohmann::ordered_json to_json(const ShadowRunResult& result);
nlohmann::ordered_json to_json(const SkyRunResult& result);
nlohmann::ordered_json to_json(const SampleRunResult& result);
nlohmann::ordered_json to_json(const SeriesResult& result);
nlohmann::ordered_json to_json(const ValidationResult& result);
nlohmann::ordered_json to_json(const std::vector<Gate>& gates);
nlohmann::ordered_json to_json(const std::vector<QuirkEffect>& effects);
nlohmann::ordered_json to_json(const std::vector<InputCheck>& checks);
nlohmann::ordered_json to_json(const UmepExchange& result);
nlohmann::ordered_json to_json(const StageRun& run);
/// All stages, with the arrays that each reads and writes.
nlohmann::ordered_json to_json(const std::vector<Stage>& stages);
nlohmann::ordered_json to_json(const UtciResult& result);
nlohmann::ordered_json to_json(const PetResult& result);

}  // namespace lockstep::urban
