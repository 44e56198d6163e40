// Commands of urban that are one call of the library.
#pragma once

#include "bound_call.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"

namespace lockstep::cli {

/// A bar on stderr; `title` names the work.
std::function<void(int64_t done, int64_t total)> progress_bar(const std::string& title);

/// One line a grid: name, range, mean.
std::string text_of(const urban::RunResult& result);

void add_urban_plant(CommandList& commands, CLI::App& urban);
void add_urban_series(CommandList& commands, CLI::App& urban);
void add_urban_results(CommandList& commands, CLI::App& urban);
void add_urban_stage(CommandList& commands, CLI::App& urban);

}  // namespace lockstep::cli
