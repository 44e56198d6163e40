// Commands of urban that are one call of the library.
#pragma once

#include "bound_call.hpp"
#include "lockstep/urban/documents.hpp"
#include "lockstep/urban/report.hpp"

namespace lockstep::cli {

/// A bar on stderr; `title` names the work.
std::function<void(int64_t done, int64_t total)> progress_bar(const std::string& title);

/// Runs `work`. Ctrl-C ends it at its next call of `on_progress`, with a warning that says what the command does `next` time, and the
/// program ends as by that signal.
int until_interrupted(std::function<void(int64_t done, int64_t total)>& on_progress,
                      const std::function<void()>& work, const char* next);

/// One line a grid: name, range, mean.
std::string text_of(const urban::RunResult& result);

void add_urban_plant(CommandList& commands, CLI::App& urban);
void add_urban_series(CommandList& commands, CLI::App& urban);
void add_urban_results(CommandList& commands, CLI::App& urban);
void add_urban_stage(CommandList& commands, CLI::App& urban);

}  // namespace lockstep::cli
