// Common to all runs of solve: stages of the host, progress as telemetry, the plot, members and lines of results.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/reports/host_stage.hpp"
#include "lockstep/solve/run.hpp"

namespace lockstep::solve {

using nlohmann::ordered_json;

/// Throws OptionError where the folder of a file to be written is missing.
void check_folders(const OptionList& list, const void* options);
/// The same of a run, and its ranges.
template <class Run>
void check_run(const Run& run) {
  const OptionList& list = schema_of<Run>();
  list.check(&run);
  check_folders(list, &run);
}
/// An error of a run's option.
template <class Run>
OptionError wrong(const char* option, std::string what, std::string expected) {
  return schema_of<Run>().error(
      {OptionError::Kind::invalid, option, std::move(what), std::move(expected), ""});
}
/// The same options with a line of telemetry an iteration.
Options observed(const Options& options);
/// The plot, if requested, and lines of telemetry.
void finish(RunResult& result, const RunOptions& options, const std::string& title);
/// The table of residuals_by_instance(), if a file is requested.
void write_residuals(RunResult& result, const std::string& file, const Problem& problem, Context& context);
/// Notes a file that was written.
void wrote(RunResult& result, const char* what, const std::string& file);

/// "cost 851000 to 13344.3 in 31 iterations (function_tolerance)".
std::string outcome(const Summary& summary);
/// The document with the members of the summary and the files.
ordered_json whole(ordered_json document, const RunResult& result);
/// The last part of a file's path.
std::string file_name(const std::string& path);

}  // namespace lockstep::solve
