// Commands of urban that are one call of the library.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "bound_call.hpp"
#include "urban/run/report.hpp"

namespace lockstep::cli {

/// A bar on stderr; `title` names the work.
std::function<void(int64_t done, int64_t total)> progress_bar(const std::string& title);

/// Hands the run's stages to the summary; prints the JSON, or one line a grid: name, range, mean.
void finish(Session& session, const urban::RunResult& result, nlohmann::ordered_json document);

void add_urban_series(CommandList& commands, CLI::App& urban);
void add_urban_stage(CommandList& commands, CLI::App& urban);

}  // namespace lockstep::cli
