// `lockstep reproduce DIR`: runs a record again and compares file by file. `lockstep compare DIR DIR`: two records.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/record/sha256.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/arrays/npy.hpp"
#include "io/text/file.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"
#include "options.hpp"
#include "record/record.hpp"
#include "session.hpp"
#include "subprocess.hpp"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// How a file of the second run compares with that of the first.
struct Comparison {
  bool same = true, within = true;
  int64_t differing_bits = 0;
  double max_abs = 0;  // NaN: not numbers
};

/// Fast numerics promise this share of an array's largest magnitude on another device; exact ones equal bits.
constexpr double kFastBound = 1e-4;

/// Members and columns that hold times and speeds: they differ from run to run.
bool is_volatile(const std::string& name) {
  for (const char* whole : {"date", "started", "version", "bytes", "time_us", "metrics", "memory", "stages",
                            "transfers", "files"})
    if (name == whole) return true;
  for (const char* end : {"seconds", "_ms", "_s", "per_second", "_bytes", "_version"})
    if (name.ends_with(end)) return true;
  return false;
}
Json without_times(const Json& value) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) list.push_back(without_times(item));
    return list;
  }
  if (!value.is_object()) return value;
  Json rest = Json::object();
  for (const auto& [name, item] : value.items())
    if (!is_volatile(name)) rest[name] = without_times(item);
  return rest;
}

int64_t bits_between(std::span<const std::byte> a, std::span<const std::byte> b) {
  int64_t bits = 8 * static_cast<int64_t>(std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
  for (size_t k = 0; k < std::min(a.size(), b.size()); ++k)
    bits += std::popcount(static_cast<unsigned>(a[k] ^ b[k]));
  return bits;
}

void compare_arrays(const Array& first, const Array& second, bool fast, Comparison& c) {
  const Array a = first.packed(), b = second.packed();
  if (a.storage() != b.storage() || a.shape() != b.shape()) {
    c.same = c.within = false;
    c.max_abs = NAN;
    return;
  }
  const std::span<const std::byte> x(a.data(), static_cast<size_t>(a.bytes())),
      y(b.data(), static_cast<size_t>(b.bytes()));
  const int64_t bits = bits_between(x, y);
  if (bits == 0) return;
  c.same = false;
  c.differing_bits += bits;
  double largest = 0, worst = 0;
  const auto walk = [&]<class T>(T) {
    for (int64_t k = 0; k < a.elements(); ++k) {
      const double u = static_cast<double>(a.as<T>()[static_cast<size_t>(k)]),
                   v = static_cast<double>(b.as<T>()[static_cast<size_t>(k)]);
      largest = std::max(largest, std::abs(u));
      if (std::isnan(u) && std::isnan(v)) continue;
      worst = std::isnan(u - v) ? INFINITY : std::max(worst, std::abs(u - v));
    }
  };
  const bool real = a.storage() == Storage::f32 || a.storage() == Storage::f64;
  if (a.storage() == Storage::f32) walk(float{});
  if (a.storage() == Storage::f64) walk(double{});
  c.max_abs = real ? std::max(c.max_abs, worst) : NAN;
  c.within = c.within && fast && real && worst <= kFastBound * largest;
}

void compare_archives(const io::NpzArrays& a, const io::NpzArrays& b, bool fast, Comparison& c) {
  if (a.size() != b.size()) c.same = c.within = false;
  for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
    if (a[k].first != b[k].first)
      c.same = c.within = false;
    else
      compare_arrays(a[k].second, b[k].second, fast, c);
  }
}

/// A CSV without the columns that hold times.
std::string without_time_columns(const std::string& text) {
  std::string out;
  std::vector<bool> kept;
  for (size_t begin = 0, row = 0; begin < text.size(); ++row) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    size_t column = 0;
    for (size_t at = begin; at <= end && at <= text.size(); ++column) {
      const size_t next = std::min(text.find(',', at), end);
      const std::string cell = text.substr(at, next - at);
      if (row == 0) kept.push_back(!is_volatile(cell));
      if (column >= kept.size() || kept[column]) out += cell + ",";
      at = next + 1;
    }
    out += '\n';
    begin = end + 1;
  }
  return out;
}

std::string comparable_text(const fs::path& file) {
  const std::string text = io::read_text_file(file), suffix = file.extension().string();
  if (suffix == ".csv") return without_time_columns(text);
  if (suffix == ".json") return without_times(io::parse_ordered_json(text, file.string())).dump();
  std::string out;  // .jsonl
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    out += without_times(io::parse_ordered_json(line, file.string())).dump() + "\n";
    begin = end + 1;
  }
  return out;
}

Comparison compare_files(const fs::path& a, const fs::path& b, bool fast) {
  Comparison c;
  if (record::sha256_of_file(a) == record::sha256_of_file(b)) return c;
  const std::string suffix = a.extension().string();
  if (suffix == ".npy") return compare_arrays(io::read_npy(a), io::read_npy(b), fast, c), c;
  if (suffix == ".npz") return compare_archives(io::read_npz(a), io::read_npz(b), fast, c), c;
  if (suffix == ".csv" || suffix == ".json" || suffix == ".jsonl") {
    const std::string x = comparable_text(a), y = comparable_text(b);
    c.differing_bits = bits_between(std::as_bytes(std::span(x)), std::as_bytes(std::span(y)));
  } else {
    c.differing_bits = bits_between(io::read_file(a), io::read_file(b));
  }
  c.same = c.within = c.differing_bits == 0;
  if (!c.same) c.max_abs = NAN;
  return c;
}

/// Reports for people, which show times; the record and its like.
bool is_compared(const std::string& path, const Json& options) {
  for (const char* name : {"telemetry", "trace"})
    if (options.contains(name) &&
        fs::path(options[name]["value"].get<std::string>()).filename() == fs::path(path).filename())
      return false;
  const std::string suffix = fs::path(path).extension().string();
  return suffix != ".html" && suffix != ".md";
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
    throw InputError("an output that is no file", file.string(), "the file that the run wrote");
  return file;
}

void check_inputs(const Json& record) {
  for (const Json& input : record["inputs"]) {
    const std::string path = input["path"];
    if (!fs::is_regular_file(path))
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
      refuse(part, "a file of this machine: only what you type may reach the network");
    std::error_code unknown;
    const fs::file_status status = fs::status(part, unknown);
    if (!part.empty() && fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
      refuse(part, "a file or a folder");
  }
}

constexpr std::array<std::string_view, 5> kRecorded = {"urban", "pde", "flow", "forecast", "solve"};

/// The program's own command of that name. Throws InputError for one that writes no records.
const Command& recorded_command(const CommandList& commands, const std::string& name) {
  for (const auto& command : commands) {
    const CLI::App* group = command->app->get_parent();
    if (command_path(*command->app) == name && group &&
        std::ranges::find(kRecorded, group->get_name()) != kRecorded.end())
      return *command;
  }
  throw InputError(fmt::format("'{}'", io::shown(name)), "run.json",
                   "a command of urban, pde, flow, forecast or solve");
}

/// The command of the record, with its outputs in `scratch` and on `device` (empty: the same). What is an output and what
/// an argument is known of the command, and not believed of the record.
std::vector<std::string> command_of(const CommandList& commands, const Json& record, const fs::path& scratch,
                                    const std::string& device) {
  constexpr std::string_view kOwn[] = {"out",       "json",  "quiet", "config", "input-memory",
                                       "telemetry", "trace", "watch", "device", "check"};
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
  for (const auto& [name, o] : record["options"].items()) {
    const auto setting = std::ranges::find(settings, name, &Setting::name);
    if (setting == settings.end())
      throw InputError(fmt::format("option '{}'", io::shown(name)), "run.json",
                       fmt::format("an option of `{}`", command));
    if (!o["given"].get<bool>() || std::ranges::find(kOwn, name) != std::end(kOwn)) continue;
    const std::string value = o["value"];
    if (setting->positional) {
      check_value(name, value);
      for (size_t begin = 0; begin <= value.size();) {
        const size_t end = std::min(value.find('\n', begin), value.size());
        positional.push_back(value.substr(begin, end - begin));
        begin = end + 1;
      }
    } else if (setting->output) {
      words.push_back(fmt::format("--{}={}", name, (scratch / fs::path(value).filename()).string()));
    } else if (app.get_option("--" + name)->get_expected_max() == 0) {
      if (value == "true") words.push_back("--" + name);
    } else {
      check_value("--" + name, value);
      words.push_back(fmt::format("--{}={}", name, value));
    }
  }
  words.push_back("--device=" + (device.empty() ? record["device"].get<std::string>() : device));
  words.push_back("--out=" + scratch.string());
  words.push_back("--quiet");
  words.push_back("--json");
  if (!positional.empty()) words.push_back("--");
  words.insert(words.end(), positional.begin(), positional.end());
  return words;
}

/// Texts of a record as a part of a line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  return text;
}

/// One line for each thing that two records differ in and that may change results.
Json differences(const Json& a, const Json& b) {
  Json lines = Json::array();
  const auto line = [&](const std::string& name, const Json& x, const Json& y) {
    const auto text = [](const Json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); };
    if (x != y) lines.push_back(one_line(fmt::format("{}: {} → {}", name, text(x), text(y))));
  };
  for (const char* name : {"command", "program", "device", "driver", "numerics"})
    line(name, a.value(name, Json()), b.value(name, Json()));
  const Json &p = a["options"], &q = b["options"];
  for (const auto& [name, o] : p.items())
    if (!o.value("file", false) && name != "device" && name != "json" && name != "quiet" && name != "check")
      line("--" + name, o["value"], q.contains(name) ? q[name]["value"] : Json("absent"));
  for (const auto& [name, o] : q.items())
    if (!p.contains(name)) line("--" + name, "absent", o["value"]);
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

/// The outputs of `record` in one folder against those of the same names in another.
Json compare_outputs(const Json& record, const fs::path& a, const fs::path& b, bool fast, std::string& text,
                     bool& good) {
  Json files = Json::array(), identical = 0, different = 0;
  for (const Json& output : record["outputs"]) {
    const std::string path = output["path"];
    if (!is_compared(path, record["options"]) || path == "run.json") continue;
    const fs::path first = output_file(a, path),
                   second = output_file(
                       b, fs::path(path).is_absolute() ? fs::path(path).filename().string() : path);
    Comparison c;
    std::string verdict = "identical";
    if (first.empty() || second.empty()) {
      c = {false, false, output["bytes"].get<int64_t>(), NAN};
      c.differing_bits = c.differing_bits > INT64_MAX / 8 ? INT64_MAX : 8 * c.differing_bits;
      verdict = first.empty() ? "missing in the first" : "missing in the second";
    } else {
      c = compare_files(first, second, fast);
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

/// A folder beside nothing of the user's, removed at the end unless it is kept.
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

int reproduce(const CommandList& commands, const CommonOptions& common, const std::string& dir, bool keep,
              bool device_given) {
  const fs::path folder = fs::absolute(dir).lexically_normal();
  const Json record = read_record(folder);
  check_inputs(record);
  for (const Json& output : record["outputs"]) {
    const std::string path = output["path"];
    if (!is_compared(path, record["options"])) continue;
    const fs::path file = output_file(folder, path);
    if (!file.empty() && record::sha256_of_file(file) != output["sha256"])
      throw InputError("an output was changed after the run", file.string(), "the file that the run wrote");
  }
  Session session(common);
  Scratch scratch(keep);
  const fs::path directory = record.value("directory", "");
  std::error_code moved;  // relative names that then lead nowhere are errors of the command
  if (!directory.empty()) fs::current_path(directory, moved);
  const ProgramResult done =
      run_program(command_of(commands, record, scratch.folder, device_given ? common.device : ""),
                  {{kOutputsBelow, scratch.folder.string()}}, false);
  if (done.exit_code >= 2) {  // its own line is on stderr, its JSON was read here
    if (common.json) print_result(done.output);
    return done.exit_code;
  }
  const Json again = read_record(scratch.folder);
  std::string text = kHead;
  bool good = true;
  Json result = compare_outputs(record, folder, scratch.folder, record["numerics"] == "fast", text, good);
  result["since"] = differences(record, again);
  for (const Json& line : result["since"]) text += "since " + line.get<std::string>() + "\n";
  text += good ? "reproduced\n" : "NOT reproduced\n";
  if (keep) {
    result["folder"] = scratch.folder.string();
    text += scratch.folder.string() + "\n";
  }
  session.finish(std::move(result), text);
  return good ? 0 : 1;
}

int compare(const CommonOptions& common, const std::vector<std::string>& dirs) {
  if (dirs.size() != 2) throw InputError(fmt::format("{} folders", dirs.size()), "compare", "two: DIR DIR");
  const Json a = read_record(dirs[0]), b = read_record(dirs[1]);
  Session session(common);
  std::string text;
  Json since = differences(a, b);
  for (const Json& line : since) text += line.get<std::string>() + "\n";
  text += kHead;
  bool good = true;
  Json result = compare_outputs(a, dirs[0], dirs[1], false, text, good);
  result["differences"] = std::move(since);
  result["same_identity"] = a["identity"] == b["identity"];
  session.finish(std::move(result), text);
  return 0;
}

}  // namespace

void add_reproduce(CommandList& commands, CLI::App& root) {
  Command& command = add_command(commands, root, "reproduce",
                                 "run the run.json of a folder again elsewhere and compare file by file");
  auto dir = std::make_shared<std::string>();
  auto keep = std::make_shared<bool>(false);
  add_positional(*command.app, "DIR", *dir, "folder that a command wrote with --out", true);
  add_flag(*command.app, "--keep", *keep, "leave the second run's folder, and name it");
  add_common(command, "lockstep reproduce out --device cpu");
  command.run = [&commands, &command, dir, keep] {
    return reproduce(commands, command.common, *dir, *keep, given(*command.app, "--device"));
  };
  Command& both = add_command(commands, root, "compare", "options, inputs and outputs of two runs");
  auto dirs = std::make_shared<std::vector<std::string>>();
  add_positional(*both.app, "DIRS", *dirs, "two folders that commands wrote with --out");
  add_common(both, "lockstep compare before after");
  both.run = [&both, dirs] { return compare(both.common, *dirs); };
}

}  // namespace lockstep::cli
