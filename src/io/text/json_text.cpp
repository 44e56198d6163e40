#include "io/text/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "io/text/input_memory.hpp"
#include "io/text/text_scanner.hpp"

namespace lockstep::io {
namespace {

constexpr int kMostLevels = 200;
constexpr size_t kMostOrdered = 1000;  // members of an object
/// The bytes that a byte of text may become: "{}," is a value of 16 in a growing list, and a map of 48.
constexpr double kBytesOfCharacter = 48;

void check_levels(std::string_view text, std::string_view where) {
  int depth = 0;
  bool quoted = false;
  for (size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (quoted) {
      if (c == '\\') ++k;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostLevels)
        throw InputError("brackets nested too deeply", where,
                         fmt::format("JSON of at most {} levels", kMostLevels));
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

InputClaim claim_of(std::string_view text, std::string_view where) {
  return {kBytesOfCharacter * static_cast<double>(text.size()), "its JSON", where};
}

/// `most`: members of an object.
template <class Json>
Json checked_json(std::string_view text, std::string_view where, size_t most) {
  using Event = typename Json::parse_event_t;
  std::vector<std::set<std::string>> open;  // the names in the objects around
  const auto watch = [&](int, Event event, Json& value) {
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event != Event::key) return true;
    const std::string& name = value.template get_ref<const std::string&>();
    if (!open.back().insert(name).second)
      throw InputError(fmt::format("the name '{}' is repeated", shown(name)), where,
                       "each name once in an object");
    if (open.back().size() > most)
      throw InputError(fmt::format("an object of more than {} members", most), where, "fewer");
    return true;
  };
  check_levels(text, where);
  try {
    return Json::parse(text, watch);
  } catch (const typename Json::parse_error& error) {
    const size_t at = std::min<size_t>(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
    throw JsonSyntaxError("text that is not JSON", fmt::format("{}:{}", where, line), "JSON");
  } catch (const typename Json::exception&) {
    throw InputError("a number in JSON that is too large", where, "numbers of 64 bits");
  }
}

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view where) {
  const InputClaim claim = claim_of(text, where);
  return within_memory(
      where, [&] { return checked_json<nlohmann::json>(text, where, std::numeric_limits<size_t>::max()); });
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, std::string_view where) {
  const InputClaim claim = claim_of(text, where);
  return within_memory(where,
                       [&] { return checked_json<nlohmann::ordered_json>(text, where, kMostOrdered); });
}

struct JsonValue::Document {
  InputClaim claim;
  nlohmann::json root;
  std::string where;
};

JsonValue::JsonValue(std::shared_ptr<const Document> document, const nlohmann::json* value, std::string path)
    : document_(std::move(document)), value_(value), path_(std::move(path)) {}

JsonValue JsonValue::parse(std::string_view text, std::string_view where) {
  InputClaim claim = claim_of(text, where);
  return within_memory(where, [&] {
    auto root = checked_json<nlohmann::json>(text, where, std::numeric_limits<size_t>::max());
    auto document =
        std::make_shared<const Document>(Document{std::move(claim), std::move(root), std::string(where)});
    const nlohmann::json* const value = &document->root;
    return JsonValue(std::move(document), value, "");
  });
}

const std::string& JsonValue::where() const { return document_->where; }

void JsonValue::fail(std::string_view what, std::string_view expected) const {
  throw InputError(fmt::format("{} {}", path_.empty() ? "the document" : shown(path_), what),
                   document_->where, expected);
}
void JsonValue::wrong_type(std::string_view expected) const {
  const std::string_view type = value_->type_name();
  fail(fmt::format("is {}{}",
                   type == "null"                  ? ""
                   : type.find_first_of("ao") == 0 ? "an "
                                                   : "a ",
                   type),
       expected);
}

std::optional<JsonValue> JsonValue::find(const std::string& name) const {
  if (!value_->is_object()) wrong_type("an object");
  const auto found = value_->find(name);
  if (found == value_->end()) return std::nullopt;
  return JsonValue(document_, &*found, path_.empty() ? name : path_ + "." + name);
}
JsonValue JsonValue::at(const std::string& name) const {
  if (auto member = find(name)) return *std::move(member);
  fail(fmt::format("has no member '{}'", name), "one of that name");
}
std::vector<JsonValue> JsonValue::items(size_t least) const {
  if (!value_->is_array()) wrong_type("an array");
  if (value_->size() < least) fail(fmt::format("has {} items", value_->size()), fmt::format("{}", least));
  std::vector<JsonValue> all;
  for (const nlohmann::json& item : *value_)
    all.push_back(JsonValue(document_, &item, fmt::format("{}[{}]", path_, all.size())));
  return all;
}
std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
  if (!value_->is_object()) wrong_type("an object");
  std::vector<std::pair<std::string, JsonValue>> all;
  for (const auto& [name, value] : value_->items())
    all.emplace_back(name, JsonValue(document_, &value, path_.empty() ? name : path_ + "." + name));
  return all;
}
double JsonValue::number() const {
  if (!value_->is_number()) wrong_type("a number");
  return value_->get<double>();
}
int64_t JsonValue::integer(int64_t low, int64_t high) const {
  if (!value_->is_number_integer()) wrong_type("a whole number");
  const bool beyond =
      value_->is_number_unsigned() && value_->get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max());
  if (beyond || value_->get<int64_t>() < low || value_->get<int64_t>() > high)
    fail(fmt::format("is {}", value_->dump()), fmt::format("{} to {}", low, high));
  return value_->get<int64_t>();
}
uint64_t JsonValue::bits() const {
  if (!value_->is_number_unsigned()) wrong_type("a whole number from 0");
  return value_->get<uint64_t>();
}
const std::string& JsonValue::text() const {
  if (!value_->is_string()) wrong_type("a string");
  return value_->get_ref<const std::string&>();
}
bool JsonValue::boolean() const {
  if (!value_->is_boolean()) wrong_type("true or false");
  return value_->get<bool>();
}

}  // namespace lockstep::io
