#include "record/record.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "commit.hpp"
#include "core/files/atomic_file.hpp"
#include "core/files/folder.hpp"
#include "core/platform/parallel.hpp"
#include "core/record/identity.hpp"
#include "core/record/journal.hpp"
#include "core/record/sha256.hpp"
#include "core/reports/json_text.hpp"
#include "io/text/file.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"
#include "options.hpp"
#include "version.hpp"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json& summary() {
  static Json json;
  return json;
}

/// Path, size and hash of each file that exists; the hashes on all threads.
Json files_json(const std::vector<fs::path>& files, const fs::path& base) {
  std::vector<std::string> hashes(files.size());
  platform::ThreadArena().for_parts(static_cast<int64_t>(files.size()), [&](int64_t first, int64_t last) {
    for (auto k = static_cast<size_t>(first); k < static_cast<size_t>(last); ++k)
      hashes[k] = record::sha256_of_file(files[k]);
  });
  Json list = Json::array();
  for (size_t k = 0; k < files.size(); ++k) {
    const fs::path inside = base.empty() ? fs::path() : files[k].lexically_relative(base);
    const bool below = !inside.empty() && *inside.begin() != "..";
    list.push_back({{"path", (below ? inside : files[k]).string()},
                    {"bytes", fs::file_size(files[k])},
                    {"sha256", hashes[k]}});
  }
  std::sort(list.begin(), list.end(), [](const Json& a, const Json& b) { return a["path"] < b["path"]; });
  return list;
}

/// Options that decide neither the numbers nor how far a run goes.
bool is_display(const std::string& name) {
  for (const char* other : {"device", "threads", "no-fallback", "json", "quiet", "config", "input-memory",
                            "telemetry", "trace", "watch", "check"})
    if (name == other) return true;
  return false;
}

std::string identity_of(const std::string& command, const Json& options, const Json& inputs) {
  record::Identity identity(command);
  for (const auto& [name, o] : options.items())
    if (!o.value("file", false) && !is_display(name) && o.value("effect", "result") != "display")
      identity.option(name, o["value"].get<std::string>(), o["given"].get<bool>());
  std::vector<std::string> hashes;
  for (const Json& input : inputs) hashes.push_back(input["sha256"]);
  std::sort(hashes.begin(), hashes.end());  // by content: a file may move
  for (size_t k = 0; k < hashes.size(); ++k)
    identity.bytes(fmt::format("input {}", k), std::as_bytes(std::span(hashes[k])));
  return identity.hash();
}

std::string seal_of(Json record) {
  record.erase("seal");
  return record::sha256(record.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json options_json(const CLI::App& app) {
  Json options = Json::object();
  for (const Setting& s : settings_of(app)) {
    Json& o = options[s.name] = {{"value", s.value}, {"given", s.given}};
    if (s.positional) o["positional"] = true;
    if (s.file) o["file"] = true;
    if (s.output) o["output"] = true;
    if (s.display) o["effect"] = "display";
  }
  return options;
}

/// The numbers of a version such as 1.2.3; those that are missing are 0.
std::array<int64_t, 3> numbers_of(std::string_view version) {
  std::array<int64_t, 3> numbers{};
  for (int64_t& number : numbers) {
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error == std::errc::result_out_of_range) number = std::numeric_limits<int64_t>::max();
    version.remove_prefix(static_cast<size_t>(end - version.data()));
    if (!version.starts_with('.')) break;
    version.remove_prefix(1);
  }
  return numbers;
}

/// Types of all members that the program uses of a record. Throws InputError that names the member.
void check_members(const io::JsonValue& record) {
  for (const char* name : {"command", "device", "driver", "numerics", "identity"}) record.at(name).text();
  if (const auto directory = record.find("directory")) directory->text();
  for (const auto& [name, option] : record.at("options").members()) {
    option.at("value").text();
    option.at("given").boolean();
    for (const char* mark : {"positional", "file", "output"})
      if (const auto value = option.find(mark)) value->boolean();
  }
  for (const char* list : {"inputs", "outputs"}) {
    std::set<std::string> paths;
    for (const io::JsonValue& file : record.at(list).items()) {
      const std::string& path = file.at("path").text();
      file.at("sha256").text();
      file.at("bytes").integer(0, std::numeric_limits<int64_t>::max());
      if (path.empty() || !paths.insert(path).second)
        throw InputError(fmt::format("'{}' in {}", io::shown(path), list), record.where(),
                         "the name of a file, each once");
    }
  }
}

}  // namespace

void begin_record() {
  journal::begin();
  summary() = {};
}
void note_summary(Json value) { summary() = std::move(value); }

void write_record(const CLI::App& app) {
  const std::string out = output_folder_of(app);
  journal::Entries entries = journal::entries();
  if (out.empty() || summary().is_null() || entries.outputs.empty()) return;
  const fs::path folder = fs::absolute(out).lexically_normal(), target = folder / "run.json";
  const bool own = std::erase(entries.outputs, target) > 0;
  const auto absent = [](const fs::path& file) { return !fs::is_regular_file(file); };
  std::erase_if(entries.outputs, absent);
  std::erase_if(entries.inputs, [&](const fs::path& file) {
    return absent(file) || file == target ||
           std::find(entries.outputs.begin(), entries.outputs.end(), file) != entries.outputs.end();
  });
  const Json& s = summary();
  Json record = {{"program", {{"version", kVersion}, {"commit", kCommit}}},
                 {"command", command_path(app)},
                 {"options", options_json(app)},
                 {"inputs", files_json(entries.inputs, {})},
                 {"device", s["device"]},
                 {"driver", s["driver"]},
                 {"numerics", s["numerics"]},
                 {"started", s["started"]},
                 {"seconds", s["seconds"]},
                 {"stages", s["stages"]},
                 {"fallbacks", s["fallbacks"]},
                 {"warnings", entries.warnings},
                 {"outputs", files_json(entries.outputs, folder)},
                 {"identity", ""},
                 {"directory", fs::current_path().string()}};
  record["identity"] = identity_of(record["command"], record["options"], record["inputs"]);
  if (own) {
    const Json members = io::parse_ordered_json(io::read_text_file(target), target.string());
    for (const auto& [name, value] : members.items())
      if (!record.contains(name)) record[name] = value;
    for (const Json& warning : members.value("warnings", Json::array()))
      if (std::ranges::find(record["warnings"], warning) == record["warnings"].end())
        record["warnings"].push_back(warning);
  }
  record["seal"] = seal_of(record);
  write_file(target, json_text(record, 2) + "\n");
}

Json read_record(const fs::path& folder) {
  constexpr auto kExpected = "the record that a command wrote";
  const InputFolder inputs(folder);
  const fs::path file = folder / "run.json";
  const std::string where = file.string(), text = io::read_text_file(file, "the run.json of a run");
  const Json record = io::parse_ordered_json(text, where);
  if (!record.is_object() || !record.contains("seal") || !record.contains("program") ||
      !record["program"].is_object() || !record["program"].contains("version") ||
      !record["program"]["version"].is_string())
    throw InputError("not the record of a run", where, kExpected);
  const std::string version = record["program"]["version"];
  if (numbers_of(version) > numbers_of(kVersion))
    throw InputError(fmt::format("a record of version {}, this is {}", io::shown(version), kVersion), where,
                     "a program at least as new");
  if (record["seal"] != seal_of(record)) throw InputError("the record was edited", where, kExpected);
  check_members(io::JsonValue::parse(text, where));
  return record;
}

}  // namespace lockstep::cli
