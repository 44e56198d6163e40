// `lockstep reproduce RESULTS`: runs a record again and compares file by file. `lockstep compare`: two records.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "bound_options.hpp"
#include "commands.hpp"
#include "core/files/folder.hpp"
#include "core/record/sha256.hpp"
#include "core/schema/shell_flags.hpp"
#include "io/text/file.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"
#include "options.hpp"
#include "record/compare_files.hpp"
#include "record/record.hpp"
#include "session.hpp"
#include "subprocess.hpp"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Fast numerics, and WebGPU, promise this share of an array's largest magnitude; exact ones elsewhere equal bits.
constexpr double kBound = 1e-4;

struct ReproduceOptions {
  std::string results;
};

void describe(Schema<ReproduceOptions>& s) {
  s.of("cli::ReproduceOptions");
  s.option("results", &ReproduceOptions::results, "folder or file that a command wrote with --out")
      .flag("RESULTS")
      .file(Option::Use::input)
      .positional()
      .required();
  add_shell_flag(s, "keep", "keep the folder of the second run, and print its name");
}

struct ComparedRuns {
  std::string a, b;
};

void describe(Schema<ComparedRuns>& s) {
  s.of("cli::ComparedRuns");
  const auto results = [&](const char* name, std::string ComparedRuns::* member, const char* flag) {
    s.option(name, member, "folder or file that a command wrote with --out")
        .flag(flag)
        .file(Option::Use::input)
        .positional()
        .required();
  };
  results("a", &ComparedRuns::a, "A");
  results("b", &ComparedRuns::b, "B");
}

/// Not reports for people and states on the way, which hold times; nor what shows how a run went; nor films and drawings of numbers that may differ.
bool is_compared(const Json& output, double bound) {
  const std::string option = output.value("option", ""),
                    suffix = fs::path(text_of(output, "path")).extension().string();
  if (option == "telemetry" || option == "trace" || option == "checkpoint" || suffix == ".html" ||
      suffix == ".md")
    return false;
  return bound == 0 || (suffix != ".mp4" && suffix != ".svg");
}

/// The file of an output, empty where it is absent. A stranger's record may name any: throws InputError for a path that
/// leaves the folder by "..", for links and for what is no file.
fs::path output_file(const fs::path& folder, const std::string& output) {
  const fs::path path = output;
  fs::path file = path.is_absolute() ? path.root_path() : folder;
  std::error_code unknown;
  for (const fs::path& part : path.relative_path()) {
    if (part == "..") throw InputError(fmt::format("'{}'", output), "run.json", "an output below its folder");
    file /= part;
    if (!path.is_absolute() && fs::is_symlink(fs::symlink_status(file, unknown)))
      throw InputError("a link in the folder of a record", file.string(),
                       "a file: links in it are not followed");
  }
  const fs::file_status status = fs::symlink_status(file, unknown);
  if (!fs::exists(status)) return {};
  if (!fs::is_regular_file(status))
    throw InputError("an output that is not a file", file.string(), "the file that the run wrote");
  return file;
}

void check_inputs(const Json& record) {
  for (const Json& input : record["inputs"]) {
    const std::string path = text_of(input, "path");
    std::error_code unknown;  // of a name that is too long
    if (!fs::is_regular_file(path, unknown))
      throw InputError("an input is missing", path, "the file that the run read");
    if (record::sha256_of_file(path) != input["sha256"])
      throw InputError("an input has changed since the run", path,
                       fmt::format("sha256 {}", input["sha256"].get<std::string>()));
  }
}

/// A record's values were not typed by the user: no network, and nothing that is neither file nor folder.
void check_value(const std::string& name, const std::string& value) {
  const auto refuse = [&](const std::string& part, const char* expected) {
    throw InputError(fmt::format("'{}' for {}", io::shown(part), name), "run.json", expected);
  };
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find_first_of(",\n", begin), value.size());
    const std::string part = value.substr(begin, end - begin);
    begin = end + 1;
    if (part.starts_with("/vsi") || part.find("://") != part.npos)
      refuse(part, "a local file: only paths of the command line may refer to the network");
    std::error_code unknown;
    const fs::file_status status = fs::status(part, unknown);
    if (!part.empty() && fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
      refuse(part, "a file or a folder");
  }
}

/// The program's own command of that name. Throws InputError for one that writes no records.
const Command& recorded_command(const CommandList& commands, const std::string& name) {
  for (const auto& command : commands)
    if (command_path(*command->app) == name && writes_records(*command->app)) return *command;
  throw InputError(fmt::format("'{}'", io::shown(name)), "run.json",
                   "a command of urban, pde, flow, forecast or solve");
}

/// The name, below a folder of its own, of the file that the second run writes for an option: as the record has it where that
/// is below its folder.
fs::path second_name(const Json& record, const std::string& option, const fs::path& value,
                     std::set<fs::path>& taken) {
  fs::path name = value.filename();
  for (const Json& output : record["outputs"])
    if (const fs::path path = text_of(output, "path");
        output.value("option", "") == option && path.is_relative() && path.filename() == name)
      name = path;
  while (!taken.insert(name).second) name = fs::path(option) / name;
  return name;
}

/// The command of the record, with its outputs in `scratch` and on `device` (empty: the same). What is an output and what
/// an argument is known of the command, and not believed of the record.
std::vector<std::string> command_of(const CommandList& commands, const Json& record, const fs::path& scratch,
                                    const std::string& device) {
  constexpr std::string_view kOwn[] = {"json",  "quiet",  "config", "input-memory", "telemetry",
                                       "trace", "device", "check",  "no-record"};
  std::vector<std::string> words = own_command();
  const std::string command = record["command"];
  const CLI::App& app = *recorded_command(commands, command).app;
  const std::vector<Setting> settings = settings_of(app);
  for (size_t begin = command.find(' ') + 1; begin < command.size();) {
    const size_t end = std::min(command.find(' ', begin), command.size());
    words.push_back(command.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<std::string> positional;
  std::set<fs::path> taken;
  for (const auto& [name, o] : record["options"].items()) {
    const auto setting = std::ranges::find(settings, name, &Setting::name);
    if (setting == settings.end())
      throw InputError(fmt::format("option '{}'", io::shown(name)), "run.json",
                       fmt::format("an option of `{}`", command));
    if (!o["given"].get<bool>() || setting->shell_alone || std::ranges::find(kOwn, name) != std::end(kOwn))
      continue;
    const std::string value = text_of(o, "value");
    if (setting->positional) {
      check_value(name, value);
      for (size_t begin = 0; begin <= value.size();) {
        const size_t end = std::min(value.find('\n', begin), value.size());
        positional.push_back(value.substr(begin, end - begin));
        begin = end + 1;
      }
    } else if (setting->folder && name == "out") {
      words.push_back("--out=" + scratch.string());
    } else if (setting->output) {
      const fs::path file = second_name(record, name, value, taken);
      if (file.is_relative() && *file.lexically_normal().begin() != "..")
        make_output_folder((scratch / file).parent_path());
      words.push_back(fmt::format("--{}={}", name, (scratch / file).string()));
    } else if (app.get_option("--" + name)->get_expected_max() == 0) {
      if (value == "true") words.push_back("--" + name);
    } else {
      check_value("--" + name, value);
      words.push_back(fmt::format("--{}={}", name, value));
    }
  }
  words.push_back("--device=" + (device.empty() ? record["device"].get<std::string>() : device));
  words.push_back("--quiet");
  words.push_back("--json");
  if (!positional.empty()) words.push_back("--");
  words.insert(words.end(), positional.begin(), positional.end());
  return words;
}

/// The record that the second run left.
fs::path record_in(const fs::path& scratch) {
  std::error_code ignored;
  if (fs::exists(scratch / "run.json")) return scratch / "run.json";
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(scratch, ignored))
    if (entry.path().native().ends_with(".run.json")) return entry.path();
  return scratch / "run.json";
}

/// Texts of a record as a part of a line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  return text;
}

/// Records of earlier versions have neither variants nor defaults that the inputs decide, which they left empty.
bool is_whole(const Json& record) { return record.contains("variants"); }
bool was_unknown(const Json& a, const Json& b) {
  return (a["value"] == "" || b["value"] == "") && !a["given"].get<bool>() && !b["given"].get<bool>();
}

/// The variants of each computation, with commas between.
std::map<std::string, std::string> variants_of(const Json& record) {
  std::map<std::string, std::set<std::string>> names;
  for (const Json& v : record["variants"]) names[v["computation"]].insert(v["variant"]);
  std::map<std::string, std::string> variants;
  for (const auto& [computation, all] : names)
    variants[computation] = fmt::format("{}", fmt::join(all, ", "));
  return variants;
}

/// One line for each thing that two records differ in and that may change results.
Json differences(const Json& a, const Json& b) {
  Json lines = Json::array();
  const auto line = [&](const std::string& name, const Json& x, const Json& y) {
    const auto text = [](const Json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); };
    if (x != y) lines.push_back(one_line(fmt::format("{}: {} → {}", name, text(x), text(y))));
  };
  for (const char* name : {"command", "program", "device", "driver", "numerics", "environment", "fallbacks"})
    line(name, a.value(name, Json::object()), b.value(name, Json::object()));
  const bool whole = is_whole(a) && is_whole(b);
  const Json &p = a["options"], &q = b["options"];
  for (const auto& [name, o] : p.items())
    if (!o.value("file", false) && name != "device" && name != "json" && name != "quiet" && name != "check" &&
        name != "no-record")
      if (whole || !q.contains(name) || !was_unknown(o, q[name]))
        line("--" + name, o["value"], q.contains(name) ? q[name]["value"] : Json("absent"));
  for (const auto& [name, o] : q.items())
    if (!p.contains(name)) line("--" + name, "absent", o["value"]);
  if (whole) {
    std::map<std::string, std::string> first = variants_of(a), second = variants_of(b);
    for (const auto& [computation, variant] : second) first.try_emplace(computation, "none");
    for (const auto& [computation, variant] : first)
      line("variant of " + computation, variant, second.contains(computation) ? second[computation] : "none");
  }
  const auto hash_of = [](const Json& record, const std::string& path) -> Json {
    for (const Json& input : record["inputs"])
      if (input["path"] == path) return input["sha256"];
    return "absent";
  };
  for (const Json& input : a["inputs"])
    line("input " + input["path"].get<std::string>(), input["sha256"], hash_of(b, input["path"]));
  for (const Json& input : b["inputs"])
    if (hash_of(a, input["path"]) == "absent")
      line("input " + input["path"].get<std::string>(), "absent", input["sha256"]);
  return lines;
}

/// The file of `record` that is what `output` is of another run: by the option that names it, else by its name.
std::string counterpart(const Json& record, const Json& output) {
  for (const Json& other : record["outputs"])
    if (output.contains("option") ? other.value("option", "") == output["option"]
                                  : other["path"] == output["path"])
      return text_of(other, "path");
  return {};
}

/// A record and the folder that it is in.
struct Run {
  Json record;
  fs::path folder;
};

/// The outputs of one run against those of another.
Json compare_outputs(const Run& a, const Run& b, double bound, std::string& text, bool& good) {
  Json files = Json::array(), identical = 0, different = 0;
  for (const Json& output : a.record["outputs"]) {
    const std::string path = text_of(output, "path"), other = counterpart(b.record, output);
    if (!is_compared(output, bound)) continue;
    const fs::path first = output_file(a.folder, path),
                   second = other.empty() ? fs::path() : output_file(b.folder, other);
    FileComparison c;
    std::string verdict = "identical";
    if (first.empty() || second.empty()) {
      c = {false, false, output["bytes"].get<int64_t>(), NAN};
      c.differing_bits = c.differing_bits > INT64_MAX / 8 ? INT64_MAX : 8 * c.differing_bits;
      verdict = first.empty() ? "missing in the first" : "missing in the second";
    } else {
      c = compare_files(first, second, bound);
      verdict = c.same ? "identical" : c.within ? "within bound" : "different";
    }
    files.push_back({{"path", path},
                     {"same", c.same},
                     {"differing_bits", c.differing_bits},
                     {"max_abs", c.max_abs},
                     {"verdict", verdict}});
    (c.same ? identical : different) = (c.same ? identical : different).get<int>() + 1;
    good = good && (c.same || c.within);
    text +=
        fmt::format("{:<20} {:>14} {:>12.4g}  {}\n", verdict, c.differing_bits, c.max_abs, one_line(path));
  }
  return {{"files", files}, {"identical", identical}, {"different", different}};
}

/// A new temporary folder without files of the user, removed at the end unless it is kept.
struct Scratch {
  explicit Scratch(bool keep) : kept(keep) {
    std::string name = (fs::temp_directory_path() / "lockstep-reproduce-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw InputError("no scratch folder", name, "room for one");
    folder = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!kept) fs::remove_all(folder, ignored);
  }
  Scratch(const Scratch&) = delete;
  fs::path folder;
  bool kept;
};

constexpr auto kHead = "file                 differing bits      max abs  path\n";

Run run_of(const fs::path& results) {
  const fs::path file = record_of(results);
  return {read_record(file), file.parent_path()};
}

int reproduce(const CommandList& commands, const CommonOptions& common, const std::string& results, bool keep,
              bool device_given) {
  const Run first = run_of(results);
  const Json& record = first.record;
  check_inputs(record);
  if (std::ranges::none_of(record["outputs"], [](const Json& output) { return is_compared(output, 0); }))
    throw InputError("a run without results that can be compared", results, "numbers, texts or pictures");
  for (const Json& output : record["outputs"]) {
    if (!is_compared(output, 0)) continue;
    const fs::path file = output_file(first.folder, text_of(output, "path"));
    if (!file.empty() && record::sha256_of_file(file) != output["sha256"])
      throw InputError("an output was changed after the run", file.string(), "the file that the run wrote");
  }
  Session session(common);
  Scratch scratch(keep);
  std::error_code moved;  // relative names that then lead nowhere are errors of the command
  if (record.contains("directory")) fs::current_path(text_of(record, "directory"), moved);
  const ProgramResult done =
      run_program(command_of(commands, record, scratch.folder, device_given ? common.device : ""),
                  {{kOutputsBelow, scratch.folder.string()}}, false);
  if (done.exit_code >= 2) {  // its own line is on stderr, its JSON was read here
    if (common.json) print_result(done.output);
    return done.exit_code;
  }
  const fs::path again = record_in(scratch.folder);
  const Run second{read_record(again), again.parent_path()};
  const auto is_exact = [](const Json& r) {
    return r["numerics"] != "fast" && !r["device"].get<std::string>().starts_with("webgpu");
  };
  const double bound = is_exact(record) && is_exact(second.record) ? 0 : kBound;
  std::string text = kHead;
  bool good = true;
  Json result = compare_outputs(first, second, bound, text, good);
  result["since"] = differences(record, second.record);
  for (const Json& line : result["since"]) text += "since " + line.get<std::string>() + "\n";
  text += result["files"].empty() ? "nothing was compared\n" : good ? "reproduced\n" : "NOT reproduced\n";
  if (keep) {
    result["folder"] = scratch.folder.string();
    text += scratch.folder.string() + "\n";
  }
  session.finish(std::move(result), text);
  return good ? 0 : 1;
}

int compare(const CommonOptions& common, const ComparedRuns& results) {
  const Run a = run_of(results.a), b = run_of(results.b);
  Session session(common);
  std::string text;
  Json since = differences(a.record, b.record);
  for (const Json& line : since) text += line.get<std::string>() + "\n";
  text += kHead;
  bool good = true;
  Json result = compare_outputs(a, b, 0, text, good);
  result["differences"] = std::move(since);
  result["same_identity"] = a.record["identity"] == b.record["identity"];
  session.finish(std::move(result), text);
  return 0;
}

}  // namespace

void add_reproduce(CommandList& commands, CLI::App& root) {
  Command& command = add_command(commands, root, "reproduce",
                                 "repeat a recorded run in a scratch folder and compare its files");
  const ReproduceOptions& options = add_options<ReproduceOptions>(command);
  add_common(command, "lockstep reproduce out --device cpu");
  command.run = [&commands, &command, &options] {
    return reproduce(commands, command.common, options.results, asked(command, "keep"),
                     command.bound_common->given.contains("device"));
  };
  Command& both = add_command(commands, root, "compare", "compare options, inputs and outputs of two runs");
  const ComparedRuns& results = add_options<ComparedRuns>(both);
  add_common(both, "lockstep compare before after");
  both.run = [&both, &results] { return compare(both.common, results); };
}

}  // namespace lockstep::cli
