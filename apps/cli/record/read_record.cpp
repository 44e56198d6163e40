#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/files/folder.hpp"
#include "io/text/base64.hpp"
#include "io/text/file.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"
#include "record/record.hpp"
#include "version.hpp"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

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

/// A member that text_of() gives.
std::string checked_text(const io::JsonValue& object, const std::string& name) {
  std::string text = object.at(name).text();
  if (const auto bytes = object.find(name + "_base64")) {
    const std::optional<std::string> decoded = io::from_base64(bytes->text());
    if (!decoded) bytes->fail("is not base64", "the bytes of " + name);
    text = *decoded;
  }
  if (text.find('\0') != text.npos) object.at(name).fail("has a byte 0", "a name");
  return text;
}

/// Types of all members that the program uses of a record. Throws InputError that names the member.
void check_members(const io::JsonValue& record) {
  for (const char* name : {"command", "device", "driver", "numerics", "identity"}) record.at(name).text();
  if (record.find("directory")) checked_text(record, "directory");
  for (const auto& [name, option] : record.at("options").members()) {
    checked_text(option, "value");
    option.at("given").boolean();
    for (const char* mark : {"positional", "file", "output"})
      if (const auto value = option.find(mark)) value->boolean();
  }
  if (const auto variants = record.find("variants"))
    for (const io::JsonValue& variant : variants->items())
      for (const char* name : {"computation", "variant", "by"}) variant.at(name).text();
  for (const char* list : {"inputs", "outputs"}) {
    std::set<std::string> paths;
    for (const io::JsonValue& file : record.at(list).items()) {
      const std::string path = checked_text(file, "path");
      file.at("sha256").text();
      file.at("bytes").integer(0, std::numeric_limits<int64_t>::max());
      if (const auto option = file.find("option")) option->text();
      if (path.empty() || !paths.insert(path).second)
        throw InputError(fmt::format("'{}' in {}", io::shown(path), list), record.where(),
                         "the name of a file, each once");
    }
  }
}

}  // namespace

fs::path record_of(const fs::path& results) {
  const fs::path whole = fs::absolute(results).lexically_normal();
  std::error_code unknown;
  if (fs::is_directory(whole, unknown)) return whole / "run.json";
  const std::string name = whole.filename().string();
  return name == "run.json" || name.ends_with(".run.json") ? whole : fs::path(whole) += ".run.json";
}

std::string command_in(const fs::path& record) {
  std::error_code unknown;
  if (!fs::is_regular_file(record, unknown)) return "";
  try {
    const io::JsonValue document = io::JsonValue::parse(io::read_text_file(record), record.string());
    const auto command = document.find("command");
    return document.find("seal") && command ? command->text() : "";
  } catch (const InputError&) { return ""; }
}

nlohmann::ordered_json read_record(const fs::path& file) {
  constexpr auto kExpected = "the record that a command wrote";
  std::error_code unknown;
  if (!fs::is_directory(file.parent_path(), unknown))
    throw InputError("cannot read the file", file.string(), "the run.json of a run");
  if (fs::exists(file, unknown) && !fs::is_regular_file(file, unknown))
    throw InputError("not a file", file.string(), "the run.json of a run");
  const InputFolder inputs(file.parent_path());
  const std::string where = file.string(), text = io::read_text_file(file, "the run.json of a run");
  const nlohmann::ordered_json record = io::parse_ordered_json(text, where);
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
