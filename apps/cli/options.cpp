#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/environment/environment.hpp"
#include "core/files/endings.hpp"
#include "core/files/folder.hpp"
#include "core/files/output_files.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {
namespace {

std::string range_text(const NumberRange& range) {
  const bool has_low = std::isfinite(range.low), has_high = std::isfinite(range.high);
  if (has_low && has_high) {
    return fmt::format("a number {} {} and at most {}", range.low_open ? "above" : "of at least", range.low,
                       range.high);
  }
  if (has_low) return fmt::format("a number {} {}", range.low_open ? "above" : "of at least", range.low);
  if (has_high) return fmt::format("a number of at most {}", range.high);
  return "a number";
}

double checked_number(const std::string& text, const std::string& option, const NumberRange& range) {
  const auto number = parse_number(text);
  const bool inside = number && std::isfinite(*number) && *number <= range.high &&
                      (range.low_open ? *number > range.low : *number >= range.low);
  if (!inside) throw InputError(fmt::format("'{}'", text), option, range_text(range));
  return *number;
}

std::string number_text(double value) { return fmt::format("{}", value); }
std::string number_text(const std::optional<double>& value) { return value ? number_text(*value) : ""; }

// The longest name without its dashes stands in messages with them.
std::string shown_name(const std::string& names) {
  const size_t at = names.rfind("--");
  return at == std::string::npos ? names : names.substr(at);
}

struct NamedFile {
  std::string option;
  const std::string* value;
  FileUse use;
  Endings endings = {};
};

std::map<const CLI::Option*, std::string>& defaults() {
  static std::map<const CLI::Option*, std::string> texts;
  return texts;
}

struct NotedSetting {
  std::function<std::string()> value;
  bool display;
};
std::map<const CLI::Option*, NotedSetting>& noted() {
  static std::map<const CLI::Option*, NotedSetting> settings;
  return settings;
}

std::map<const CLI::Option*, const CLI::Option*>& formers() {
  static std::map<const CLI::Option*, const CLI::Option*> options;
  return options;
}

std::map<const CLI::App*, std::vector<NamedFile>>& all_files() {
  static std::map<const CLI::App*, std::vector<NamedFile>> files;
  return files;
}
std::vector<NamedFile>& files_of(const CLI::App& app) { return all_files()[&app]; }

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  return fs::equivalent(a, b, unknown) ||
         fs::absolute(a, unknown).lexically_normal() == fs::absolute(b, unknown).lexically_normal();
}

void check_ending(const NamedFile& output) {
  if (const std::string ending = other_ending(*output.value, output.endings); !ending.empty())
    throw InputError(fmt::format("'{}' ends in {}", *output.value, ending), output.option,
                     fmt::format("a name in {}", fmt::join(output.endings, " or ")));
}

void check_output(const NamedFile& output, const std::vector<NamedFile>& all) {
  for (const NamedFile& other : all) {
    if (&other == &output) break;  // of two outputs the later one is refused
    if (other.use != FileUse::output_file || other.value->empty() || *other.value == "/dev/null") continue;
    if (same_file(*output.value, *other.value))
      throw InputError(fmt::format("{} is {} too", *output.value, other.option), output.option,
                       "another file");
  }
  if (const char* below = environment::text(kOutputsBelow)) {
    const auto inside = std::filesystem::absolute(*output.value).lexically_normal().lexically_relative(below);
    if (inside.empty() || *inside.begin() == "..")
      throw InputError(*output.value, output.option, fmt::format("an output in {}", below));
  }
  if (output.use == FileUse::output_folder) {
    check_output_folder(*output.value);
    return note_output_folder(*output.value);
  }
  for (const NamedFile& other : all)
    if (other.use == FileUse::input && !other.value->empty() && same_file(*output.value, *other.value) &&
        std::filesystem::is_regular_file(*other.value))
      throw InputError(fmt::format("{} is the input", *output.value), output.option, "another file");
  check_ending(output);
  check_output_file(*output.value);
}

/// Neither what shows how a run went nor its state on the way.
bool is_result(const NamedFile& file) {
  return file.use == FileUse::output_file && file.option != "--telemetry" && file.option != "--trace" &&
         file.option != "--checkpoint";
}

bool is_pipe(const std::string& file) {
  std::error_code unknown;
  const std::filesystem::file_status status = std::filesystem::status(file, unknown);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

void check_record(const CLI::App& app, const std::vector<NamedFile>& all) {
  const std::filesystem::path record = record_file_of(app);
  constexpr auto kHint = "--no-record leaves it out";
  if (record.empty()) {
    const CLI::Option* none = app.get_option_no_throw("--no-record");
    const auto written = [](const NamedFile& file) { return is_result(file) && !file.value->empty(); };
    if (none && none->count() > 0 && std::ranges::none_of(all, written))
      throw InputError("an option without effect", "--no-record", "results in a file, such as --out FILE");
    return;
  }
  for (const NamedFile& other : all)
    if (!other.value->empty() && same_file(record.string(), *other.value))
      throw InputError(fmt::format("{} is the record of the run", *other.value), other.option, "another file")
          .with_hint(kHint);
  check_output_file(record);
}

}  // namespace

bool writes_records(const CLI::App& app) {
  const CLI::App* group = app.get_parent();
  if (!group) return false;
#define LOCKSTEP_APPLICATION(name) \
  if (group->get_name() == #name) return true;
#include "applications.def"
#undef LOCKSTEP_APPLICATION
  return false;
}

CLI::Option* add_checked(CLI::App& app, const std::string& names, const std::string& help,
                         const std::string& placeholder, std::string value,
                         std::function<void(const std::string&)> set) {
  CLI::Option* option = app.add_option_function<std::string>(names, std::move(set), help)
                            ->type_name(placeholder)
                            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  defaults()[option] = std::move(value);
  return option;
}

void note_file(CLI::App& app, const std::string& option, const std::string& value, FileUse use) {
  files_of(app).push_back({option, &value, use});
}

void note_setting(const CLI::Option* option, std::function<std::string()> value, bool display) {
  noted()[option] = {std::move(value), display};
}

void note_former(CLI::Option* former, const CLI::Option* now) { formers()[former->group("")] = now; }
const CLI::Option* current_of(const CLI::Option* option) {
  const auto found = formers().find(option);
  return found == formers().end() ? option : found->second;
}
void take_former(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const CLI::Option* now = current_of(option);
    if (now == option || option->count() == 0) continue;
    const std::string name = "--" + option->get_single_name(), new_name = "--" + now->get_single_name();
    if (now->count() > 0)
      throw InputError(fmt::format("{} with {}", name, new_name), command_path(app),
                       new_name + " alone, its new name");
    logging::warning("{} is now called {}", name, new_name);
  }
}

void forget_files() {
  all_files().clear();
  defaults().clear();
  noted().clear();
  formers().clear();
  keep_nothing();
  forget_output_folders();
}

void check_files(const CLI::App& app) {
  const std::vector<NamedFile>& all = files_of(app);
  for (const NamedFile& file : all)
    if (file.use == FileUse::input && !file.value->empty()) keep_whole(*file.value);
  for (const NamedFile& file : all)
    if (file.use != FileUse::input && !file.value->empty()) check_output(file, all);
  check_record(app, all);
}

Request request_of(const CLI::App& app) {
  Request request{command_path(app), {}, {}};
  const std::vector<NamedFile>& files = files_of(app);
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    const bool one = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast;
    const std::string value =
        one ? option->results().back() : fmt::format("{}", fmt::join(option->results(), " "));
    const bool read = std::any_of(files.begin(), files.end(), [&](const NamedFile& file) {
      return file.use == FileUse::input && option->check_name(file.option);
    });
    (read ? request.inputs : request.options).emplace_back(current_of(option)->get_single_name(), value);
  }
  return request;
}

std::vector<Setting> settings_of(const CLI::App& app) {
  std::vector<Setting> all;
  const std::vector<NamedFile>& files = files_of(app);
  const std::vector<const CLI::Option*> options = app.get_options();
  for (const CLI::Option* option : options) {
    if (option->check_name("--help") || current_of(option) != option) continue;
    Setting& s = all.emplace_back();
    s.name = option->get_single_name();
    s.given = std::any_of(options.begin(), options.end(), [&](const CLI::Option* other) {
      return current_of(other) == option && other->count() > 0;
    });
    s.positional = option->get_positional();
    const bool flag = option->get_expected_max() == 0;
    const auto setting = noted().find(option);
    if (setting != noted().end()) {
      s.value = setting->second.value();
      s.display = setting->second.display;
    } else if (flag)
      s.value = s.given ? "true" : "false";
    else if (!s.given)
      s.value = defaults().contains(option) ? defaults().at(option) : "";
    else if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast)
      s.value = option->results().empty() ? "" : option->results().back();
    else
      s.value = fmt::format("{}", fmt::join(option->results(), "\n"));
    for (const NamedFile& file : files) {
      if (!option->check_name(file.option)) continue;
      // A text that names no file may be a name of the command's own, such as an initial field's.
      std::error_code unknown;  // of a name that is too long
      s.file = file.use != FileUse::input || s.value.empty() || std::filesystem::exists(s.value, unknown);
      s.output = file.use != FileUse::input;
      s.folder = file.use == FileUse::output_folder;
    }
  }
  return all;
}

std::filesystem::path record_file_of(const CLI::App& app) {
  namespace fs = std::filesystem;
  const CLI::Option* none = app.get_option_no_throw("--no-record");
  if (!writes_records(app) || (none && none->count() > 0)) return {};
  const std::vector<NamedFile>& files = files_of(app);
  for (const NamedFile& file : files)
    if (file.use == FileUse::output_folder && file.option == "--out" && !file.value->empty())
      return fs::absolute(*file.value).lexically_normal() / "run.json";
  const NamedFile* results = nullptr;
  std::error_code unknown;
  for (const NamedFile& file : files)
    if (is_result(file) && !file.value->empty() && !is_pipe(*file.value) &&
        (!results || file.option == "--out"))
      results = &file;
  return results ? fs::absolute(*results->value).lexically_normal() += ".run.json" : fs::path();
}

bool given(const CLI::App& app, const std::string& option) { return app.get_option(option)->count() > 0; }

void refuse_given(const CLI::App& app, std::initializer_list<const char*> options, const std::string& why,
                  const std::string& expected) {
  for (const char* option : options)
    if (given(app, option)) throw InputError(why, option, expected);
}

void expect_beside(const CLI::App& app, const std::string& option, const std::string& needed) {
  if (given(app, option) && !given(app, needed))
    throw InputError("an option without effect", option, needed + " too");
}

void refuse_both(const CLI::App& app, const std::string& one, const std::string& other) {
  if (given(app, one) && given(app, other))
    throw InputError(fmt::format("{} with {}", one, other), command_path(app), "one of them");
}

std::optional<double> parse_number(const std::string& text) {
  double number = 0;
  const char* begin = text.c_str() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.c_str() + text.size();
  const auto [at, error] = std::from_chars(begin, end, number);
  if (begin == end || at != end || error != std::errc()) return std::nullopt;
  return number;
}

int64_t parse_bytes(const std::string& text, const std::string& option) {
  const size_t end = text.find_first_not_of("0123456789.");
  const std::optional<double> number = parse_number(text.substr(0, end));
  std::string unit = end == text.npos ? "" : text.substr(end);
  for (const char* suffix : {"iB", "B"})
    if (unit.ends_with(suffix)) unit.resize(unit.size() - std::string(suffix).size());
  const std::string units = "KMGT";
  const bool known = unit.empty() || (unit.size() == 1 && units.find(unit) != units.npos);
  const size_t power = unit.empty() ? 0 : units.find(unit) + 1;
  const double bytes = number && known ? *number * std::pow(1024.0, static_cast<double>(power)) : 0;
  if (!(bytes >= 1 && bytes < 0x1p62))
    throw InputError(fmt::format("'{}'", text), option, "a size such as 512M or 8G");
  return static_cast<int64_t>(bytes);
}

void add_text(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
              const std::string& placeholder) {
  add_checked(app, names, help, placeholder, value,
              [&value, name = shown_name(names)](const std::string& text) {
                if (text.empty()) throw InputError("an empty text", name, "a value");
                value = text;
              });
}

void add_file(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
              const std::string& placeholder) {
  add_text(app, names, value, help, placeholder);
  files_of(app).push_back({shown_name(names), &value, FileUse::input});
}

void add_output_file(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                     const Endings& endings) {
  add_text(app, names, value, help, "FILE");
  files_of(app).push_back({shown_name(names), &value, FileUse::output_file, endings});
}

void add_output_folder(CLI::App& app, const std::string& names, std::string& value, const std::string& help) {
  add_text(app, names, value, help, "DIR");
  files_of(app).push_back({shown_name(names), &value, FileUse::output_folder});
}

void add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help) {
  app.add_flag(names, value, help);
}

void add_number(CLI::App& app, const std::string& names, double& value, const std::string& help,
                const std::string& placeholder, NumberRange range) {
  add_checked(app, names, help, placeholder, number_text(value),
              [&value, range, name = shown_name(names)](const std::string& text) {
                value = checked_number(text, name, range);
              });
}

void add_number(CLI::App& app, const std::string& names, std::optional<double>& value,
                const std::string& help, const std::string& placeholder, NumberRange range) {
  add_checked(app, names, help, placeholder, number_text(value),
              [&value, range, name = shown_name(names)](const std::string& text) {
                value = checked_number(text, name, range);
              });
}

void add_integer(CLI::App& app, const std::string& names, int64_t& value, const std::string& help,
                 const std::string& placeholder, int64_t low, int64_t high) {
  add_checked(app, names, help, placeholder, std::to_string(value),
              [&value, low, high, name = shown_name(names)](const std::string& text) {
                int64_t number = 0;
                const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
                if (text.empty() || at != text.data() + text.size() || error != std::errc() || number < low ||
                    number > high) {
                  throw InputError(fmt::format("'{}'", text), name,
                                   high == INT64_MAX
                                       ? fmt::format("a whole number of at least {}", low)
                                       : fmt::format("a whole number from {} to {}", low, high));
                }
                value = number;
              });
}

void add_choice(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                const std::vector<std::string>& choices) {
  const std::string all = fmt::format("{}", fmt::join(choices, "|"));
  add_checked(app, names, help, all, value,
              [&value, choices, all, name = shown_name(names)](const std::string& text) {
                if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
                  throw InputError(fmt::format("'{}'", text), name, "one of " + all);
                }
                value = text;
              });
}

void add_positional(CLI::App& app, const std::string& name, std::string& value, const std::string& help,
                    bool required) {
  app.add_option_function<std::string>(
         name,
         [&value, name](const std::string& text) {
           if (text.empty()) throw InputError("an empty name", name, "the name of a file");
           value = text;
         },
         help)
      ->required(required);
  files_of(app).push_back({name, &value, FileUse::input});
}
void add_positional(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                    const std::string& help) {
  app.add_option(name, values, help);
}
void require(CLI::App& app, const std::string& name) { app.get_option(name)->required(); }
void set_footer(CLI::App& app, const std::string& text) { app.footer(text); }

void add_common(Command& command, const std::string& example) {
  CLI::App& app = *command.app;
  CommonOptions& common = command.common;
  add_text(app, "--device", common.device,
           "auto, cpu, cuda[:N], webgpu[:N], interp, or a list of them; auto is the first of cuda, a "
           "hardware webgpu adapter and cpu",
           "NAME");
  add_integer(app, "--threads", common.threads, "CPU threads; 0 = all", "N", 0, 65536);
  add_flag(app, "--no-fallback", common.no_fallback,
           "a stage that fails on the device is an error (exit code 3)");
  add_choice(app, "--numerics", common.numerics,
             "exact: the same bits on every device; fast: hardware functions", {"exact", "fast"});
  add_flag(app, "--json", common.json, "one JSON document on stdout and nothing else");
  add_flag(app, "--quiet", common.quiet, "errors and fallbacks only on stderr");
  add_integer(
      app, "--check", common.check,
      "every N-th launch (--check alone: each) also runs on the interpreter, with checks; exit code 1 where "
      "it finds something",
      "N", 1, INT32_MAX);
  add_file(app, "--config", common.config, "options from a TOML file; those of the command line win");
  add_text(app, "--input-memory", common.input_memory,
           "memory for all that is read, such as 8G (default: three quarters of what is free)", "SIZE");
  add_output_file(app, "--telemetry", common.telemetry, "JSON lines, one object per stage",
                  {".jsonl", ".json", ".ndjson", ".log", ".txt"});
  add_output_file(app, "--trace", common.trace, "Chrome trace of the run, for Perfetto", {".json"});
  for (const char* name : {"--device", "--threads", "--no-fallback", "--numerics", "--json", "--quiet",
                           "--check", "--config", "--input-memory", "--telemetry", "--trace"}) {
    app.get_option(name)->group("Common options");
  }
  const std::vector<NamedFile>& files = files_of(app);
  if (writes_records(app) && std::ranges::any_of(files, is_result) &&
      std::ranges::find(files, FileUse::output_folder, &NamedFile::use) == files.end())
    add_flag(app, "--no-record", common.no_record, "no FILE.run.json beside the results");
  set_footer(app, "Example:\n  " + example);
}

std::string command_path(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent ? command_path(*parent) + " " + app.get_name() : app.get_name();
}

std::vector<std::string> split_list(const std::string& text, const std::string& option) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin) throw InputError(fmt::format("'{}'", text), option, "values between commas");
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace lockstep::cli
