// Parts of results as JSON that other documents contain; lockstep/urban/report.hpp has the whole ones.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lockstep/urban/series.hpp"

namespace lockstep::urban {

nlohmann::ordered_json document_of(const RunResult& result);
nlohmann::ordered_json document_of(const SeriesResult& result);

}  // namespace lockstep::urban
