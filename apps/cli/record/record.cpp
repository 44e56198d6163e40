#include "record/record.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "commit.hpp"
#include "core/environment/environment.hpp"
#include "core/files/atomic_file.hpp"
#include "core/platform/parallel.hpp"
#include "core/record/identity.hpp"
#include "core/record/journal.hpp"
#include "core/record/sha256.hpp"
#include "core/record/stamp.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "device/variants/variants.hpp"
#include "io/text/base64.hpp"
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

fs::path whole(const fs::path& file) {
  std::error_code ignored;
  return fs::absolute(file, ignored).lexically_normal();
}

bool is_below(const fs::path& file, const fs::path& folder) {
  const fs::path inside = file.lexically_relative(folder);
  return !inside.empty() && *inside.begin() != "..";
}

/// Path, size and hash of each file; the hashes on all threads.
Json files_json(const std::vector<fs::path>& files, const fs::path& base) {
  std::vector<std::string> hashes(files.size());
  platform::ThreadArena().for_parts(static_cast<int64_t>(files.size()), [&](int64_t first, int64_t last) {
    for (auto k = static_cast<size_t>(first); k < static_cast<size_t>(last); ++k)
      hashes[k] = record::sha256_of_file(files[k]);
  });
  Json list = Json::array();
  for (size_t k = 0; k < files.size(); ++k) {
    const bool below = !base.empty() && is_below(files[k], base);
    Json& file = list.emplace_back(Json::object());
    put_text(file, "path", (below ? files[k].lexically_relative(base) : files[k]).string());
    file["bytes"] = fs::file_size(files[k]);
    file["sha256"] = hashes[k];
  }
  std::sort(list.begin(), list.end(), [](const Json& a, const Json& b) { return a["path"] < b["path"]; });
  return list;
}

/// The file of an output option, or one of the fields next to a checkpoint.
bool is_of(const fs::path& file, const Setting& s, const fs::path& path) {
  return file == path || (s.name == "checkpoint" && is_below(file, fs::path(path) += ".fields"));
}

/// The files that a run reads and writes. Those that it reads below its folder of results, where no option names them, are its own: a run that
/// continues takes it up again.
struct Files {
  Files(const std::vector<Setting>& settings, const fs::path& record) {
    journal::Entries entries = journal::entries();
    outputs = std::move(entries.outputs);
    std::erase(outputs, record);
    const auto any = [&](auto match) {
      return std::ranges::any_of(
          settings, [&](const Setting& s) { return s.file && !s.value.empty() && match(s, whole(s.value)); });
    };
    for (fs::path& file : entries.inputs) {
      const bool written = file == record || std::ranges::find(outputs, file) != outputs.end() ||
                           any([&](const Setting& s, const fs::path& path) {
                             return s.output && !s.folder && is_of(file, s, path);
                           });
      const bool named =
          any([&](const Setting& s, const fs::path& path) { return !s.output && is_below(file, path); });
      const bool inside =
          any([&](const Setting& s, const fs::path& path) { return s.folder && is_below(file, path); });
      if (!written) (inside && !named ? outputs : inputs).push_back(std::move(file));
    }
    const auto absent = [](const fs::path& file) { return !fs::is_regular_file(file); };
    // Records of runs in folders of their own have times and names of files, as this one.
    std::erase_if(outputs,
                  [&](const fs::path& file) { return absent(file) || file.filename() == "run.json"; });
    std::erase_if(inputs, absent);
  }
  std::vector<fs::path> inputs, outputs;
};

/// Entries of the inputs of this run that were hashed.
std::map<fs::path, Json>& hashed() {
  static std::map<fs::path, Json> entries;
  return entries;
}

Json inputs_json(const std::vector<fs::path>& files) {
  std::vector<fs::path> rest;
  for (const fs::path& file : files)
    if (!hashed().contains(file)) rest.push_back(file);
  for (const Json& entry : files_json(rest, {})) hashed()[text_of(entry, "path")] = entry;
  Json list = Json::array();
  for (const fs::path& file : files) list.push_back(hashed().at(file));
  std::sort(list.begin(), list.end(), [](const Json& a, const Json& b) { return a["path"] < b["path"]; });
  return list;
}

std::string identity_of(const std::string& command, const Json& options, const Json& inputs) {
  record::Identity identity(command);
  for (const auto& [name, o] : options.items())
    if (!o.value("file", false) && o.value("effect", "result") != "display")
      identity.option(name, o["value"].get<std::string>(), o["given"].get<bool>());
  std::vector<std::string> hashes;
  for (const Json& input : inputs) hashes.push_back(input["sha256"]);
  std::sort(hashes.begin(), hashes.end());  // by content: a file may move
  for (size_t k = 0; k < hashes.size(); ++k)
    identity.bytes(fmt::format("input {}", k), std::as_bytes(std::span(hashes[k])));
  return identity.hash();
}

Json options_json(const std::vector<Setting>& settings) {
  Json options = Json::object();
  for (const Setting& s : settings) {
    Json& o = options[s.name] = Json::object();
    put_text(o, "value", s.value);
    o["given"] = s.given;
    if (s.positional) o["positional"] = true;
    if (s.file) o["file"] = true;
    if (s.output) o["output"] = true;
    if (s.display) o["effect"] = "display";
  }
  return options;
}

/// Variables that change how a run is computed.
Json environment_json() {
  Json set = Json::object();
  for (const auto& [name, text] : environment::set_by_user()) set[std::string(name)] = text;
  return set;
}

/// The variant that each computation took, several where its problems differed.
Json variants_json() {
  Json list = Json::array();
  for (const variants::Chosen& c : variants::chosen())
    list.push_back({{"computation", c.computation}, {"variant", c.variant}, {"by", c.by}});
  return list;
}

/// Marks the outputs that an option names.
void name_options(Json& outputs, const std::vector<Setting>& settings, const fs::path& base) {
  for (const Setting& s : settings)
    if (s.output && !s.folder && !s.value.empty())
      for (Json& output : outputs)
        if (is_of(whole(base / text_of(output, "path")), s, whole(s.value))) output["option"] = s.name;
}

}  // namespace

void put_text(Json& object, const std::string& name, const std::string& text) {
  object[name] = text;
  const std::string shown = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (Json::parse(shown) != text) object[name + "_base64"] = io::base64(text);
}
std::string text_of(const Json& object, const std::string& name) {
  const auto bytes = object.find(name + "_base64");
  return bytes == object.end() ? object.at(name).get<std::string>()
                               : io::from_base64(bytes->get<std::string>()).value_or("");
}

std::string seal_of(Json record) {
  record.erase("seal");
  return record::sha256(record.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Recording::Recording(const CLI::App& app) : app_(app) {
  journal::begin();
  variants::forget_chosen();
  summary() = {};
  hashed().clear();
  const fs::path target = record_file_of(app);
  if (target.filename() == "run.json") earlier_ = command_in(target);
  record::set_run(target.empty() ? std::function<std::string()>() : [&app, target] {
    const std::vector<Setting> settings = settings_of(app);
    return identity_of(command_path(app), options_json(settings),
                       inputs_json(Files(settings, target).inputs));
  });
}
Recording::~Recording() { record::set_run({}); }

std::string program_commit() { return kCommit; }

void note_summary(Json value) { summary() = std::move(value); }

void Recording::write() const {
  const fs::path target = record_file_of(app_), base = target.parent_path();
  const journal::Entries entries = journal::entries();
  if (target.empty() || summary().is_null() || entries.outputs.empty()) return;
  if (const std::string now = command_path(app_); !earlier_.empty() && earlier_ != now)
    logging::warning("{} holds results of `{}`, whose record is replaced by that of `{}`", base.string(),
                     io::shown(earlier_), now);
  const bool own = std::ranges::find(entries.outputs, target) != entries.outputs.end();
  const std::vector<Setting> settings = settings_of(app_);
  const Files files(settings, target);
  const Json& s = summary();
  Json record = {{"program", {{"version", kVersion}, {"commit", kCommit}}},
                 {"command", command_path(app_)},
                 {"options", options_json(settings)},
                 {"inputs", inputs_json(files.inputs)},
                 {"device", s["device"]},
                 {"driver", s["driver"]},
                 {"numerics", s["numerics"]},
                 {"environment", environment_json()},
                 {"started", s["started"]},
                 {"seconds", s["seconds"]},
                 {"stages", s["stages"]},
                 {"variants", variants_json()},
                 {"fallbacks", s["fallbacks"]},
                 {"warnings", entries.warnings},
                 {"outputs", files_json(files.outputs, base)},
                 {"identity", ""}};
  put_text(record, "directory", fs::current_path().string());
  name_options(record["outputs"], settings, base);
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

}  // namespace lockstep::cli
