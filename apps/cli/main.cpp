// The `lockstep` program: parses, dispatches, and turns errors into one line and an exit code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "bound_options.hpp"
#include "command_line.hpp"
#include "commands.hpp"
#include "core/environment/environment.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/check.hpp"
#include "lockstep/device_names.hpp"
#include "lockstep/error.hpp"
#include "lockstep/parallel.hpp"
#include "program.hpp"
#include "record/record.hpp"
#include "reference.hpp"
#include "session.hpp"
#include "subprocess.hpp"
#include "version.hpp"

namespace lockstep::cli {

Command& add_command(CommandList& commands, CLI::App& parent, const std::string& name,
                     const std::string& help) {
  Command& command = *commands.emplace_back(std::make_unique<Command>());
  command.app = parent.add_subcommand(name, help);
  return command;
}

namespace {

enum ExitCode { kDone = 0, kFound = 1, kBadUse = 2, kDeviceFailed = 3 };

bool& wants_json() {
  static bool wanted = false;
  return wanted;
}

/// Without the middle of what a file or an option contains: place and expectation are at the end.
std::string shortened(const std::string& message) {
  constexpr size_t kBegin = 400, kEnd = 1600;
  if (message.size() <= kBegin + kEnd) return message;
  return fmt::format("{} … ({} bytes) … {}", message.substr(0, kBegin), message.size(),
                     message.substr(message.size() - kEnd));
}

/// One line on stderr, and with --json a document on stdout. Returns the exit code.
int report_error(ExitCode code, const Error& error, const std::string& hint) {
  const parallel::Launch launch = parallel::launch_of_environment();
  const auto* of_group = dynamic_cast<const parallel::GroupError*>(&error);
  const bool everywhere = of_group && of_group->everywhere();
  if (everywhere && launch.rank > 0) return code;
  const std::string rank = launch.size > 1 && !everywhere ? fmt::format("rank {}: ", launch.rank) : "";
  logging::line("lockstep: error: " + rank + shortened(error.what()));
  if (!hint.empty()) logging::line("hint: " + hint);
  if (wants_json()) {
    const nlohmann::ordered_json document = {{"error",
                                              {{"what", shortened(error.problem())},
                                               {"where", shortened(error.where())},
                                               {"expected", shortened(error.expected())},
                                               {"hint", hint},
                                               {"code", int(code)}}}};
    const std::string text = json_text(document, 2);
    std::fwrite((text + '\n').c_str(), 1, text.size() + 1, stdout);
    std::fflush(stdout);
  }
  if (!everywhere) parallel::abort_launch(code);  // the others would wait for this rank
  return code;
}
int report_error(ExitCode code, const Error& error) { return report_error(code, error, error.hint()); }

// The innermost command that was named.
const CLI::App& deepest(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.back());
}

std::vector<std::string> names_of(const CLI::App& app, bool options) {
  std::vector<std::string> names;
  if (options) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(child->get_name());
  }
  return names;
}

const Command* command_of(const CommandList& commands, const CLI::App& app) {
  for (const auto& command : commands)
    if (command->app == &app) return command.get();
  return nullptr;
}

[[noreturn]] void refuse_unknown(const std::string& word, const CLI::App& app, const CommandList& commands) {
  const bool is_option = word.starts_with('-');
  const std::vector<std::string> known = names_of(app, is_option);
  const std::string name = word.substr(0, word.find('='));
  std::string nearest = nearest_name(name, known);
  if (is_option)
    if (const std::string other = option_of_keyword(command_of(commands, app), name); !other.empty())
      nearest = other;
  const std::string path = command_path(app);
  const bool has_commands = !is_option && !known.empty();
  throw InputError(
      fmt::format("unknown {} '{}'",
                  is_option      ? "option"
                  : has_commands ? "command"
                                 : "argument",
                  word),
      path,
      has_commands ? fmt::format("one of {}", fmt::join(known, ", ")) : "what `" + path + " --help` lists")
      .with_hint(nearest.empty() ? std::string() : "did you mean " + nearest + "?");
}

/// CLI11 prints the help of the last command that it knows where a `--help` follows one that it does not.
void refuse_unknown_command(const std::vector<std::string>& words, const CLI::App& root,
                            const CommandList& commands) {
  const auto [app, named] = named_command(words, root);
  if (named < words.size() && !words[named].starts_with('-') && !names_of(*app, false).empty())
    refuse_unknown(words[named], *app, commands);
}

// An option that takes one value and was given two that differ.
void refuse_two_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (option->get_multi_option_policy() != CLI::MultiOptionPolicy::TakeLast) continue;
    for (const std::string& value : values)
      if (value != values.front())
        throw InputError(fmt::format("two values, '{}' and '{}'", values.front(), value), option->get_name(),
                         "one of them");
  }
  if (app.get_parent()) refuse_two_values(*app.get_parent());
}

// CLI11 takes the next word as the value of `--out=` and of `--out`, also where that word is an option.
void refuse_options_as_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.size() > 2 && value.starts_with("--"))
        throw InputError(fmt::format("the option '{}' instead of a value", value), option->get_name(),
                         "a value; for a file whose name begins with --, write ./" + value);
}

// CLI11's own findings in Lockstep's words.
[[noreturn]] void refuse(const CLI::ParseError& e, const CLI::App& root, const CommandList& commands) {
  const CLI::App& app = deepest(root);
  const std::string path = command_path(app);
  if (dynamic_cast<const CLI::ExtrasError*>(&e)) {
    const auto rest = root.remaining(true);
    refuse_unknown(rest.empty() ? std::string(e.what()) : rest.front(), app, commands);
  }
  if (dynamic_cast<const CLI::RequiredError*>(&e)) {
    // A misspelt option is often the one that is missing.
    for (const std::string& word : root.remaining(true))
      if (word.starts_with("--") && word.size() > 2) refuse_unknown(word, app, commands);
    const auto children = names_of(app, false);
    if (!children.empty())
      throw InputError("no command", path, fmt::format("one of {}", fmt::join(children, ", ")));
    std::vector<std::string> missing;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_required() && option->count() == 0) missing.push_back(option->get_name());
    }
    const auto rest = root.remaining(true);
    std::string listed;
    for (size_t k = 0; k < missing.size(); ++k)
      listed += fmt::format("{}{}", k == 0 ? "" : k + 1 == missing.size() ? " and " : ", ", missing[k]);
    throw InputError(fmt::format("{} {} missing", listed, missing.size() == 1 ? "is" : "are"), path,
                     fmt::format("the options that '{} --help' marks REQUIRED", path))
        .with_hint(rest.empty() ? "" : fmt::format("'{}' is the value of no option", rest.front()));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e)) {
    const std::string text = e.what();
    throw InputError(text.substr(0, text.find('\n')), path, "a value after each option that takes one");
  }
  throw InputError(e.what(), path, "what `" + path + " --help` lists");
}

/// Several processes would do the same work, and write the same files.
void refuse_ranks(const Command& command, const CLI::App& app) {
  const parallel::Launch launch = parallel::launch_of_environment();
  if (command.over_ranks || launch.size <= 1) return;
  throw InputError(fmt::format("{} processes of {}", launch.size, launch.launcher), command_path(app),
                   "one process: this command does not work over ranks");
}

/// Findings of checked launches are collected while a command runs, and forgotten after it.
struct CollectedChecks {
  CollectedChecks() { collect_check_findings(true); }
  ~CollectedChecks() {
    check_launches(earlier);
    collect_check_findings(false);
    clear_check_findings();
  }
  const int64_t earlier = checked_every();
};

/// Whether the commands of all applications are needed: not where the first word names one of them or a command of the engine.
/// A file of --config may have tables of any command.
bool lists_commands(const CommandLine& line, const std::string& first, const CLI::App& root) {
  for (const auto* words : {&line.leading, &line.rest})
    for (const std::string& word : *words)
      if (word.starts_with("--config")) return true;
  if (first == "reproduce") return true;  // runs what a record names
#define LOCKSTEP_APPLICATION(name) \
  if (first == #name) return false;
#include "applications.def"
#undef LOCKSTEP_APPLICATION
  const std::vector<std::string> engine = names_of(root, false);
  return std::find(engine.begin(), engine.end(), first) == engine.end();
}

std::string version_text(bool json) {
  constexpr const char* kBackEnds[] = {"cpu", "cuda", "webgpu", "interp"};
  if (!json)
    return fmt::format("lockstep {}\ncommit {}\nback ends: {}\n", kVersion, program_commit(),
                       fmt::join(kBackEnds, ", "));
  return json_text({{"version", kVersion}, {"commit", program_commit()}, {"back_ends", kBackEnds}}, 2) + "\n";
}

/// The command that was chosen, or `instead` in its place, with its record.
int run_command(Command& command, const std::function<void()>& instead) {
  const CLI::App& chosen = *command.app;
  refuse_two_values(chosen);
  if (!instead) refuse_ranks(command, chosen);
  environment::check();
  refuse_options_as_values(chosen);
  if (const std::string& device = command.common.device;
      !instead && !(command.over_ranks && parallel::asks_all(device)))
    check_device_names(device);
  if (const int64_t bytes = command.common.input_memory; bytes > 0) io::set_input_memory(bytes);
  check_files(chosen);
  set_request(request_of(chosen));
  if (instead)
    command.run = [&] {
      instead();
      return kDone;
    };
  const Recording recording(chosen);
  const int code = run_bound(command);
  if (instead || parallel::launch_of_environment().rank == 0) recording.write();
  return code == kDone && !instead && !check_findings().empty() ? kFound : code;
}

/// `instead`: done in place of the command.
int run(int argc, char** argv, const std::function<void()>& instead = {}) {
  std::optional<CollectedChecks> checks;
  forget_files();
  if (!instead) {
    checks.emplace();
    io::set_input_memory(0);
  }
  CLI::App root(
      "Scientific GPU kernels: written once, bit-identical on the CPU and CUDA, verified and measured.",
      "lockstep");
  const CLI::Option* version = root.add_flag_function(
      "--version", [](int64_t) {}, "print version, commit and back ends, also with --json");
  root.require_subcommand(0, 1);
  root.footer("Example:\n  lockstep devices\n\n`lockstep help COMMAND` lists the options of a command.");
  CommandList commands;
  add_devices(commands, root);
  add_verify(commands, root);
  add_bench(commands, root);
  add_tune(commands, root);
  add_emit(commands, root);
  add_report(commands, root);
  add_reproduce(commands, root);
  const CommandLine line = command_line({argv + 1, argv + argc}, *commands.front()->app);
  if (line.asks_version()) {
    print_result(version_text(wants_json()));
    return kDone;
  }
  const std::string first = line.rest.empty() ? "" : line.rest.front();
  const bool all = lists_commands(line, first, root);
#define LOCKSTEP_APPLICATION(name) \
  if (all || first == #name) add_##name(commands, root);
#include "applications.def"
#undef LOCKSTEP_APPLICATION
  add_completion(commands, root);
  // One of a group: what follows a chosen command is its argument, also where another command has that name.
  for (const auto& command : commands) command->app->require_subcommand(0, 1);

  refuse_unknown_command(line.rest, root, commands);
  std::vector<std::string> arguments = with_config(line.ordered(root), commands, root);
  wants_json() |= std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  std::replace(arguments.begin(), arguments.end(), std::string("--check"), std::string("--check=1"));
  for (const std::string& word : arguments)
    if (word.size() > 3 && word.starts_with("--") && word.find('=') == word.size() - 1)
      throw InputError("an empty text", word.substr(0, word.size() - 1), "a value");
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back.
  try {
    root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    const CLI::App& app = deepest(root);
    if (wants_json())
      print_result(reference_of(app));
    else
      print_result(app.help(app.get_parent() ? command_path(*app.get_parent()) : std::string()));
    return kDone;
  } catch (const CLI::CallForAllHelp&) {
    print_result(root.help("", CLI::AppFormatMode::All));
    return kDone;
  } catch (const CLI::ParseError& e) { refuse(e, root, commands); }
  if (version->count() > 0) {
    print_result(version_text(false));
    return kDone;
  }
  const CLI::App& chosen = deepest(root);
  for (const auto& command : commands) {
    if (command->app != &chosen || !command->run) continue;
    return run_command(*command, instead);
  }
  if (&chosen == &root && argc == 1) {
    print_result(root.help());
    return kDone;
  }
  throw InputError("no command", command_path(chosen),
                   fmt::format("one of {}", fmt::join(names_of(chosen, false), ", ")));
}

}  // namespace

int program(int argc, char** argv, std::vector<std::string> own) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of the write, in libraries too
  set_own_command(std::move(own));
  wants_json() =
      std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  try {
    return run(argc, argv);
  } catch (const InputError& e) { return report_error(kBadUse, e); } catch (const DeviceError& e) {
    return report_error(kDeviceFailed, Error(e.problem(), "device", "a device that completes its work"),
                        e.hint().empty() ? "without --no-fallback the stage would run on the CPU" : e.hint());
  } catch (const UnsupportedError& e) { return report_error(kBadUse, e); } catch (const Error& e) {
    return report_error(kDeviceFailed, e);
  } catch (const std::bad_alloc&) {
    return report_error(kDeviceFailed,
                        Error("out of memory", "host", "more free memory, or a smaller problem"),
                        "a smaller problem needs less; where a command has --tile, smaller tiles do");
  } catch (const std::exception& e) {
    return report_error(kDeviceFailed,
                        Error(e.what(), "lockstep", "no internal error; this is a fault of Lockstep"));
  }
}

void recorded(const std::vector<std::string>& words, const std::function<void()>& work) {
  static std::mutex one;
  const std::unique_lock lock(one, std::try_to_lock);
  if (!lock.owns_lock()) return work();
  struct Failed {};
  std::exception_ptr failure;
  std::vector<std::string> all = {"lockstep"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  try {
    run(static_cast<int>(argv.size()), argv.data(), [&] {
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
        throw Failed();  // errors of the work are in its caller's words already
      }
    });
  } catch (const Failed&) { std::rethrow_exception(failure); }
}

}  // namespace lockstep::cli

int main(int argc, char** argv) {
  const int code = lockstep::cli::program(argc, argv);
  lockstep::parallel::end_launch();
  return code;
}
