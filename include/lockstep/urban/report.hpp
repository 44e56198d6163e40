// Results of runs as in the program's JSON.
#pragma once

#include <string>
#include <vector>

#include "lockstep/urban/areas.hpp"
#include "lockstep/urban/comfort.hpp"
#include "lockstep/urban/compare.hpp"
#include "lockstep/urban/exchange.hpp"
#include "lockstep/urban/plant.hpp"
#include "lockstep/urban/series.hpp"
#include "lockstep/urban/stages.hpp"
#include "lockstep/urban/sunlight.hpp"

namespace lockstep::urban {

std::string to_json(const WallRunResult& result);
std::string to_json(const ShadowRunResult& result);
std::string to_json(const SkyRunResult& result);
std::string to_json(const SampleRunResult& result);
std::string to_json(const SeriesResult& result);
std::string to_json(const ValidationResult& result);
std::string to_json(const std::vector<Gate>& gates);
std::string to_json(const std::vector<QuirkEffect>& effects);
std::string to_json(const std::vector<InputCheck>& checks);
std::string to_json(const UmepExchange& result);
std::string to_json(const CompareResult& result);
std::string to_json(const SunlightResult& result);
std::string to_json(const AreaStatisticsResult& result);
std::string to_json(const PlantResult& result);
std::string to_json(const StageRun& run);
/// All stages, with the arrays that each reads and writes.
std::string to_json(const std::vector<Stage>& stages);
std::string to_json(const UtciResult& result);
std::string to_json(const PetResult& result);

}  // namespace lockstep::urban
