// run.json in the folder of --out: what a command did, with all that is needed to do it again.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace CLI {
class App;
}

namespace lockstep::cli {

/// Before a command runs: files that it reads and publishes count from now on.
void begin_record();
/// The device, driver, stages and times of the run, from the session's end.
void note_summary(nlohmann::ordered_json summary);
/// After a command that wrote files into a folder of --out. Members that the command itself put into run.json stay.
void write_record(const CLI::App& app);

/// Throws InputError for a folder without a record, a record that was edited, or one of a newer version.
nlohmann::ordered_json read_record(const std::filesystem::path& folder);

}  // namespace lockstep::cli
