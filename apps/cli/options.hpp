// Options of commands on top of CLI11, with Lockstep's own checks and error lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// CLI11 is a heavy header: only main, options, config and completion include it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep::cli {

/// Options of every command.
struct CommonOptions {
  std::string device = "auto";
  std::string numerics = "exact";
  int64_t threads = 0, check = 0;
  bool no_fallback = false, json = false, quiet = false, no_record = false;
  std::string config, telemetry, trace;
  int64_t input_memory = 0;  // bytes; 0: three quarters of the free memory
  // Of commands that work over ranks.
  int64_t ranks = 0;  // 0: those of the launcher, or one
  bool share_devices = false;
  double wait_limit_s = 600;
};

struct BoundOptions;

/// One command: its options, filled by CLI11, and what it does. `run` returns the exit code.
struct Command {
  CLI::App* app = nullptr;
  CommonOptions common;
  std::shared_ptr<BoundOptions> bound, bound_common;  // its own, and those of every command
  bool over_ranks = false;                            // works over several processes, threads or devices
  std::function<int()> run;
};

enum class FileUse : uint8_t { input, output_file, output_folder };
/// An option whose text `set` takes; of two values the last one holds.
CLI::Option* add_checked(CLI::App& app, const std::string& names, const std::string& help,
                         const std::string& placeholder, std::function<void(const std::string&)> set);
/// The file of an option, for check_files().
void note_file(CLI::App& app, const std::string& option, const std::string& value, FileUse use);
/// The value that the record of a run has of an option, whether it changes no number, and whether only the shell has it.
void note_setting(const CLI::Option* option, std::function<std::string()> value, bool display,
                  bool shell_alone = false);

/// An option's earlier name: hidden from help, records and completion.
void note_former(CLI::Option* former, const CLI::Option* now);
/// The option that it is today: itself, or the one that took its place.
const CLI::Option* current_of(const CLI::Option* option);
/// Says the new name of each earlier one that was given; refuses both.
void take_former(const CLI::App& app);

/// Before commands are added: of an earlier run of the program in this process nothing stays.
void forget_files();
/// Where this variable names a folder, no output may be outside of it: `reproduce` runs records that it does not trust.
inline constexpr auto kOutputsBelow = "LOCKSTEP_OUTPUTS_BELOW";
/// Before a command runs: throws InputError for an output that cannot be written, is an input or another output.
void check_files(const CLI::App& app);

/// A request: the command, the files that it reads, its other options, as the command line and the file
/// of --config give them.
struct Request {
  std::string command;
  std::vector<std::pair<std::string, std::string>> inputs, options;
};
Request request_of(const CLI::App& app);

/// An option as the record of a run has it: flags by "true" or "false"; empty: no default.
struct Setting {
  std::string name, value;
  bool given = false, positional = false;
  bool file = false, output = false;  // of an input or an output; of an output
  bool folder = false;                // an output that is a folder
  bool display = false;               // changes no number
  bool shell_alone = false;           // changes no result: not even a file
};
std::vector<Setting> settings_of(const CLI::App& app);
/// The commands of applications; those of the engine write measurements and texts that no record repeats.
bool writes_records(const CLI::App& app);
/// The record of a run: run.json in the folder of --out, else FILE.run.json of the first result that is a file. Empty: none is
/// kept, for nothing is written, --no-record was given, or the results are pipes.
std::filesystem::path record_file_of(const CLI::App& app);

void set_footer(CLI::App& app, const std::string& text);
/// Whether a command keeps its record next to a file, once all its options are added.
bool keeps_file_record(const CLI::App& app);
/// --device, --json and the rest that every command has, and an example for its help.
void add_common(Command& command, const std::string& example);

/// The command's name as typed: "lockstep urban svf".
std::string command_path(const CLI::App& app);

}  // namespace lockstep::cli
