#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "core/environment/environment.hpp"
#include "core/files/folder.hpp"
#include "core/files/output_files.hpp"
#include "core/reports/log.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {
namespace {

struct NamedFile {
  std::string option;
  const std::string* value;
  FileUse use;
};

struct NotedSetting {
  std::function<std::string()> value;
  bool display, shell_alone;
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

void check_output(const NamedFile& output, const std::vector<NamedFile>& all) {
  for (const NamedFile& other : all) {
    if (&other == &output) break;  // of two outputs the later one is refused
    if (other.use != FileUse::output_file || other.value->empty() || *other.value == "/dev/null") continue;
    if (same_file(*output.value, *other.value))
      throw InputError(fmt::format("{} is also {}", *output.value, other.option), output.option,
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

/// Names of results that commands write into the folder of --out.
constexpr const char* kResults[] = {
    "blow_up.npz", "compare.html",   "curve.csv",     "curve.png",   "day.mp4",      "errors.png",
    "ground.tif",  "log.csv",        "log.jsonl",     "loss.png",    "metrics.json", "poi.csv",
    "report.md",   "run.nc",         "run.npz",       "spectra.png", "summary.json", "trees.gpkg",
    "svfs.zip",    "shadowmats.npz", "sky_states.npz"};

/// Throws InputError for a file of another option that a result in the folder of --out would replace.
void check_results(const std::vector<NamedFile>& all) {
  for (const NamedFile& folder : all) {
    if (folder.use != FileUse::output_folder || folder.option != "--out" || folder.value->empty()) continue;
    for (const NamedFile& other : all)
      for (const char* result : kResults)
        if (other.use == FileUse::output_file && !other.value->empty() &&
            same_file((std::filesystem::path(*folder.value) / result).string(), *other.value))
          throw InputError(fmt::format("{} is also a result in the folder of --out", *other.value),
                           other.option, "another file");
  }
}

void check_record(const CLI::App& app, const std::vector<NamedFile>& all) {
  check_results(all);
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
                         const std::string& placeholder, std::function<void(const std::string&)> set) {
  return app.add_option_function<std::string>(names, std::move(set), help)
      ->type_name(placeholder)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void note_file(CLI::App& app, const std::string& option, const std::string& value, FileUse use) {
  files_of(app).push_back({option, &value, use});
}

void note_setting(const CLI::Option* option, std::function<std::string()> value, bool display,
                  bool shell_alone) {
  noted()[option] = {std::move(value), display, shell_alone};
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
      s.shell_alone = setting->second.shell_alone;
    } else if (flag)
      s.value = s.given ? "true" : "false";
    else if (!s.given)
      s.value = "";
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

void set_footer(CLI::App& app, const std::string& text) { app.footer(text); }

bool keeps_file_record(const CLI::App& app) {
  const std::vector<NamedFile>& files = files_of(app);
  return writes_records(app) && std::ranges::any_of(files, is_result) &&
         std::ranges::find(files, FileUse::output_folder, &NamedFile::use) == files.end();
}

std::string command_path(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent ? command_path(*parent) + " " + app.get_name() : app.get_name();
}

}  // namespace lockstep::cli
