#include "io/text/toml.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/error.hpp"

#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0
#define TOML_EXCEPTIONS 1
#define TOML_MAX_NESTED_VALUES 100
#include <toml++/toml.h>

namespace lockstep::io {
namespace {

constexpr int kMaximumParts = 100;

[[noreturn]] void refuse(const std::string& what, std::string_view where, int64_t line,
                         std::string_view expected) {
  throw InputError(what, fmt::format("{}:{}", where, line), expected);
}

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// toml++ limits the depth of values, but not that of dotted keys, whose tables it frees recursively. No string
// or comment of a sound file has so many words with single dots between them either.
void check_dotted_keys(std::string_view text, std::string_view where) {
  int64_t line = 1;
  int parts = 1;
  bool in_word = false, after_blank = false;
  for (const char c : text) {
    line += c == '\n';
    const bool word = is_bare(c) || c == '"' || c == '\'', blank = c == ' ' || c == '\t';
    if (word) {
      if (in_word && after_blank) parts = 1;
      in_word = true;
    } else if (c == '.' && in_word) {
      if (++parts > kMaximumParts)
        refuse("a key of too many parts", where, line, fmt::format("at most {} parts", kMaximumParts));
      in_word = false;
    } else if (!blank) {
      parts = 1;
      in_word = false;
    }
    after_blank = blank;
  }
}

TomlValue convert(const toml::node& node, std::string_view where);

TomlTable convert_table(const toml::table& table, std::string_view where) {
  struct Row {
    toml::source_position position;
    const toml::key* key;
    const toml::node* node;
  };
  std::vector<Row> rows;
  for (auto&& [key, node] : table) rows.push_back({key.source().begin, &key, &node});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.position < b.position; });
  TomlTable members;
  for (const Row& row : rows) members.emplace_back(std::string(row.key->str()), convert(*row.node, where));
  return members;
}

TomlValue convert(const toml::node& node, std::string_view where) {
  const int line = static_cast<int>(node.source().begin.line);
  if (const auto* table = node.as_table()) return TomlValue(convert_table(*table, where), line);
  if (const auto* array = node.as_array()) {
    TomlArray items;
    for (const toml::node& item : *array) items.push_back(convert(item, where));
    return TomlValue(std::move(items), line);
  }
  if (const auto* text = node.as_string()) return TomlValue(text->get(), line);
  if (const auto* whole = node.as_integer()) return TomlValue(whole->get(), line);
  if (const auto* number = node.as_floating_point()) return TomlValue(number->get(), line);
  if (const auto* flag = node.as_boolean()) return TomlValue(flag->get(), line);
  refuse("a date or time found", where, line, "a string in quotes, a number, true or false");
}

// toml++ says "Error while parsing <place>: expected <this>, saw <that>", or another reason after the colon.
[[noreturn]] void rethrow(const toml::parse_error& error, std::string_view where) {
  constexpr std::string_view kStart = "Error while parsing ", kExpected = ": expected ", kSaw = ", saw ";
  std::string_view text = error.description();
  const int64_t line = error.source().begin.line;
  if (text.starts_with(kStart)) text.remove_prefix(kStart.size());
  const size_t expected = text.find(kExpected), saw = text.rfind(kSaw);
  if (expected == std::string_view::npos || saw == std::string_view::npos || saw < expected)
    refuse(std::string(text), where, line, "valid TOML");
  refuse(fmt::format("{} found in {}", text.substr(saw + kSaw.size()), text.substr(0, expected)), where, line,
         text.substr(expected + kExpected.size(), saw - expected - kExpected.size()));
}

template <class T>
const T& expect(const TomlValue& value, std::string_view where, const char* wanted) {
  if (const T* found = value.get<T>()) return *found;
  refuse(fmt::format("{} found", value.kind()), where, value.line(), wanted);
}

}  // namespace

const char* TomlValue::kind() const {
  constexpr const char* kNames[] = {"a boolean", "an integer", "a float", "a string", "an array", "a table"};
  return kNames[content_.index()];
}
double TomlValue::number(std::string_view where) const {
  if (const auto* whole = get<int64_t>()) return static_cast<double>(*whole);
  return expect<double>(*this, where, "a number");
}
int64_t TomlValue::integer(std::string_view where) const {
  return expect<int64_t>(*this, where, "an integer");
}
const std::string& TomlValue::text(std::string_view where) const {
  return expect<std::string>(*this, where, "a string");
}
bool TomlValue::boolean(std::string_view where) const { return expect<bool>(*this, where, "true or false"); }
const TomlArray& TomlValue::array(std::string_view where) const {
  return expect<TomlArray>(*this, where, "an array");
}
const TomlTable& TomlValue::table(std::string_view where) const {
  return expect<TomlTable>(*this, where, "a table");
}

const TomlValue* find(const TomlTable& table, std::string_view key) {
  for (const auto& [name, value] : table) {
    if (name == key) return &value;
  }
  return nullptr;
}

TomlTable parse_toml(std::string_view text, std::string_view where) {
  constexpr double kBytesOfCharacter = 150;  // "1," is a node of toml++ and a TomlValue in growing lists
  const InputClaim claim(kBytesOfCharacter * double(text.size()), "its TOML", where);
  check_dotted_keys(text, where);
  return within_memory(where, [&] {
    try {
      return convert_table(toml::parse(text), where);
    } catch (const toml::parse_error& error) { rethrow(error, where); }
  });
}

TomlTable read_toml(const std::filesystem::path& path) {
  return within_memory(path.string(),
                       [&] { return parse_toml(read_text_file(path, "a TOML file"), path.string()); });
}

}  // namespace lockstep::io
