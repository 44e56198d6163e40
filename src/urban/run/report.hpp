// The results of runs as JSON, with the members that specs and scripts rely on.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lockstep/urban.hpp"
#include "lockstep/urban/series.hpp"

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

}  // namespace lockstep::urban
