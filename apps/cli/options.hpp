// Options of commands on top of CLI11, with Lockstep's own checks and error lines.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

// CLI11 is a heavy header: only main, options, config and completion include it.
namespace CLI {
class App;
}

namespace lockstep::cli {

/// What every command takes.
struct CommonOptions {
  std::string device = "auto";
  std::string numerics = "exact";
  int64_t threads = 0;
  bool no_fallback = false, json = false, quiet = false;
  std::string config, telemetry, trace;
};

/// One command: its options, filled by CLI11, and what it does. `run` returns the exit code.
struct Command {
  CLI::App* app = nullptr;
  CommonOptions common;
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
void add_file(CLI::App& app, const std::string& names, std::string& value, const std::string& help);
void add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help);
void add_number(CLI::App& app, const std::string& names, double& value, const std::string& help,
                const std::string& placeholder, NumberRange range = {});
void add_number(CLI::App& app, const std::string& names, std::optional<double>& value,
                const std::string& help, const std::string& placeholder, NumberRange range = {});
void add_integer(CLI::App& app, const std::string& names, int64_t& value, const std::string& help,
                 const std::string& placeholder, int64_t low, int64_t high);
/// A positional argument; `values` takes all that follow.
void add_positional(CLI::App& app, const std::string& name, std::string& value, const std::string& help,
                    bool required);
void add_positional(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                    const std::string& help);
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

/// "a=1,b=2.5": names, each once, with what stands after them.
std::vector<std::pair<std::string, std::string>> assignments(const std::string& text,
                                                             const std::string& option);

/// The number of an option's text, or InputError.
double number_of(const std::string& text, const std::string& option);

/// A number written in full, as std::from_chars reads it.
std::optional<double> parse_number(const std::string& text);

}  // namespace lockstep::cli
