// Options of commands on top of CLI11, with Lockstep's own checks and error lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
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
  std::string config, telemetry, trace, input_memory;
};

struct BoundOptions;

/// One command: its options, filled by CLI11, and what it does. `run` returns the exit code.
struct Command {
  CLI::App* app = nullptr;
  CommonOptions common;
  std::shared_ptr<BoundOptions> bound;  // those of a schema
  std::function<int()> run;
};

/// Limits of a number; the message says what was expected.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
};

void add_text(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
              const std::string& placeholder = "TEXT");
/// A file that is read; no command writes over it.
void add_file(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
              const std::string& placeholder = "FILE");
enum class FileUse : uint8_t { input, output_file, output_folder };
/// An option whose text `set` takes; of two values the last one holds.
CLI::Option* add_checked(CLI::App& app, const std::string& names, const std::string& help,
                         const std::string& placeholder, std::string value,
                         std::function<void(const std::string&)> set);
/// The file of an option, for check_files().
void note_file(CLI::App& app, const std::string& option, const std::string& value, FileUse use);
/// The value that the record of a run has of an option, and whether it changes no number.
void note_setting(const CLI::Option* option, std::function<std::string()> value, bool display);

/// An option's earlier name: hidden from help, records and completion.
void note_former(CLI::Option* former, const CLI::Option* now);
/// The option that it is today: itself, or the one that took its place.
const CLI::Option* current_of(const CLI::Option* option);
/// Says the new name of each earlier one that was given; refuses both.
void take_former(const CLI::App& app);

/// Endings of the files that a writer makes; a name without an ending is any of them. Empty: any name.
using Endings = std::vector<std::string>;
inline const Endings kTables{".csv", ".txt"}, kDrawings{".png", ".svg"};
/// A file, a folder that is written: see check_files().
void add_output_file(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                     const Endings& endings);
void add_output_folder(CLI::App& app, const std::string& names, std::string& value, const std::string& help);
void add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help);
void add_number(CLI::App& app, const std::string& names, double& value, const std::string& help,
                const std::string& placeholder, NumberRange range = {});
void add_number(CLI::App& app, const std::string& names, std::optional<double>& value,
                const std::string& help, const std::string& placeholder, NumberRange range = {});
void add_integer(CLI::App& app, const std::string& names, int64_t& value, const std::string& help,
                 const std::string& placeholder, int64_t low, int64_t high);
/// A positional argument, a file that is read or a name; `values` takes all that follow.
void add_positional(CLI::App& app, const std::string& name, std::string& value, const std::string& help,
                    bool required);
void add_positional(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                    const std::string& help);
/// Before commands are added: of an earlier run of the program in this process nothing stays.
void forget_files();
/// Where this variable names a folder, no output may be outside of it: `reproduce` runs records that it does not trust.
inline constexpr auto kOutputsBelow = "LOCKSTEP_OUTPUTS_BELOW";
/// Before a command runs: throws InputError for an output that cannot be written, is an input or another output, or
/// whose ending is that of another kind of file.
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
};
std::vector<Setting> settings_of(const CLI::App& app);
/// The commands of applications; those of the engine write measurements and texts that no record repeats.
bool writes_records(const CLI::App& app);
/// The record of a run: run.json in the folder of --out, else FILE.run.json of the first result that is a file. Empty: none is
/// kept, for nothing is written, --no-record was given, or the results are pipes.
std::filesystem::path record_file_of(const CLI::App& app);

/// Whether the command line or the file of --config has it, whatever its value.
bool given(const CLI::App& app, const std::string& option);
/// Refuses those of `options` that are given, since nothing would use them.
void refuse_given(const CLI::App& app, std::initializer_list<const char*> options, const std::string& why,
                  const std::string& expected);
/// Refuses `option` where `needed` is not beside it.
void expect_beside(const CLI::App& app, const std::string& option, const std::string& needed);
/// Refuses the two together.
void refuse_both(const CLI::App& app, const std::string& one, const std::string& other);

/// Without this option the command is refused.
void require(CLI::App& app, const std::string& name);
void set_footer(CLI::App& app, const std::string& text);
/// One of `choices`.
void add_choice(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                const std::vector<std::string>& choices);

/// --device, --threads and the rest that every command has, and an example for its help.
void add_common(Command& command, const std::string& example);

/// The command's name as typed: "lockstep urban svf".
std::string command_path(const CLI::App& app);

/// Texts between commas; empty parts are refused.
std::vector<std::string> split_list(const std::string& text, const std::string& option);

/// Bytes from "8G", "8GiB", "512M", "4096".
int64_t parse_bytes(const std::string& text, const std::string& option);

/// A number written in full, as std::from_chars reads it.
std::optional<double> parse_number(const std::string& text);

}  // namespace lockstep::cli
