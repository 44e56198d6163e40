// The `lockstep` program: parses, dispatches, and turns errors into one line and an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <new>

#include "commands.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"
#include "program.hpp"
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

enum ExitCode { kDone = 0, kBadUse = 2, kDeviceFailed = 3 };

void report_error(const std::string& message, const std::string& hint = {}) {
  logging::line("lockstep: error: " + message);
  if (!hint.empty()) logging::line("hint: " + hint);
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t k = 0; k <= b.size(); ++k) row[k] = k;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t above = row[k];
      row[k] = std::min({above + 1, row[k - 1] + 1, diagonal + (a[i - 1] == b[k - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

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

[[noreturn]] void refuse_unknown(const std::string& word, const CLI::App& app) {
  const bool is_option = word.starts_with('-');
  const std::vector<std::string> known = names_of(app, is_option);
  std::string nearest;
  size_t distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : known) {
    const size_t d = edit_distance(word.substr(0, word.find('=')), name);
    if (d < distance) {
      distance = d;
      nearest = name;
    }
  }
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

// CLI11's own findings in Lockstep's words.
[[noreturn]] void refuse(const CLI::ParseError& e, const CLI::App& root) {
  const CLI::App& app = deepest(root);
  const std::string path = command_path(app);
  if (dynamic_cast<const CLI::ExtrasError*>(&e)) {
    const auto rest = root.remaining(true);
    refuse_unknown(rest.empty() ? std::string(e.what()) : rest.front(), app);
  }
  if (dynamic_cast<const CLI::RequiredError*>(&e)) {
    // A misspelt option is often the one that is missing.
    for (const std::string& word : root.remaining(true))
      if (word.starts_with("--") && word.size() > 2) refuse_unknown(word, app);
    const auto children = names_of(app, false);
    if (!children.empty())
      throw InputError("no command", path, fmt::format("one of {}", fmt::join(children, ", ")));
    std::vector<std::string> missing;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_required() && option->count() == 0) missing.push_back(option->get_name());
    }
    throw InputError(fmt::format("{} is missing", fmt::join(missing, " and ")), path,
                     fmt::format("all that '{} --help' marks REQUIRED", path));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e)) {
    const std::string text = e.what();
    throw InputError(text.substr(0, text.find('\n')), path, "a value after each option that takes one");
  }
  throw InputError(e.what(), path, "what `" + path + " --help` lists");
}

int run(int argc, char** argv) {
  forget_files();
  CLI::App root("Scientific GPU kernels, written once: the same bits on CPU and GPU, proven and measured.",
                "lockstep");
  root.set_version_flag("--version", std::string("lockstep ") + kVersion);
  root.require_subcommand(0, 1);
  root.footer("Example:\n  lockstep devices\n\n`lockstep COMMAND --help` tells the options of a command.");
  CommandList commands;
  add_devices(commands, root);
  add_verify(commands, root);
  add_bench(commands, root);
  add_emit(commands, root);
  add_report(commands, root);
#define LOCKSTEP_APPLICATION(name) add_##name(commands, root);
#include "applications.def"
#undef LOCKSTEP_APPLICATION
  add_completion(commands, root);
  // One of a group: what follows a chosen command is its argument, also where another command has that name.
  for (const auto& command : commands) command->app->require_subcommand(0, 1);

  std::vector<std::string> arguments(argv + 1, argv + argc);
  arguments = with_config(arguments, commands, root);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back.
  try {
    root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    const CLI::App& app = deepest(root);
    print_result(app.help(app.get_parent() ? command_path(*app.get_parent()) : std::string()));
    return kDone;
  } catch (const CLI::CallForAllHelp&) {
    print_result(root.help("", CLI::AppFormatMode::All));
    return kDone;
  } catch (const CLI::CallForVersion& e) {
    print_result(e.what());
    return kDone;
  } catch (const CLI::ParseError& e) { refuse(e, root); }
  const CLI::App& chosen = deepest(root);
  for (const auto& command : commands) {
    if (command->app != &chosen || !command->run) continue;
    refuse_two_values(chosen);
    check_files(chosen);
    set_request(request_of(chosen));
    return command->run();
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
  set_own_command(std::move(own));
  try {
    return run(argc, argv);
  } catch (const InputError& e) {
    report_error(e.what(), e.hint());
    return kBadUse;
  } catch (const DeviceError& e) {
    report_error(fmt::format("{} [device]: expected it to finish its work", e.what()),
                 e.hint().empty() ? "without --no-fallback the stage would run on the CPU" : e.hint());
    return kDeviceFailed;
  } catch (const DeviceUnavailable& e) {
    report_error(e.what(), "`lockstep devices` tells what this machine has");
    return kDeviceFailed;
  } catch (const UnsupportedError& e) {
    report_error(e.what(), e.hint());
    return kBadUse;
  } catch (const Error& e) {
    report_error(e.what(), e.hint());
    return kDeviceFailed;
  } catch (const std::bad_alloc&) {
    report_error("out of memory [host]: expected enough of it for this size",
                 "a smaller problem needs less; where a command has --tile, smaller tiles do");
    return kDeviceFailed;
  } catch (const std::exception& e) {
    report_error(std::string(e.what()) + " [lockstep]: expected no such failure; it is a fault of Lockstep");
    return kDeviceFailed;
  }
}

}  // namespace lockstep::cli

int main(int argc, char** argv) { return lockstep::cli::program(argc, argv); }
