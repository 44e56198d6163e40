// JSON of strangers: the one place that parses it.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::io {

/// The text is no JSON; errors of depth, size and names are plain InputErrors.
class JsonSyntaxError : public InputError {
 public:
  using InputError::InputError;
};

/// A document. Throws InputError for text that is no JSON, brackets more than 200 deep, a name twice in one object, and
/// where the budget of inputs does not hold the document. Linear in the length of the text.
nlohmann::json parse_json(std::string_view text, std::string_view where);
/// The same with members in the order of the text, at most 1000 in an object: each is found by going through them.
nlohmann::ordered_json parse_ordered_json(std::string_view text, std::string_view where);

/// A value of a document by its path. A value of another type is an InputError that names the path:
/// "results[3].median_ms is a string".
class JsonValue {
 public:
  /// The whole document, as parse_json reads it; it keeps its share of the budget.
  static JsonValue parse(std::string_view text, std::string_view where);

  /// A member of an object; none where it is absent.
  std::optional<JsonValue> find(const std::string& name) const;
  JsonValue at(const std::string& name) const;
  /// The items of an array. `least`: fewer of them are an error.
  std::vector<JsonValue> items(size_t least = 0) const;
  /// The members of an object in the order of their names.
  std::vector<std::pair<std::string, JsonValue>> members() const;
  double number() const;
  int64_t integer(int64_t low, int64_t high) const;
  uint64_t bits() const;  ///< a whole number of 64 bits, from 0
  const std::string& text() const;
  bool boolean() const;

  const nlohmann::json& json() const { return *value_; }
  const std::string& where() const;
  /// "results[3] WHAT [file]: expected EXPECTED"
  [[noreturn]] void fail(std::string_view what, std::string_view expected) const;

 private:
  struct Document;
  JsonValue(std::shared_ptr<const Document> document, const nlohmann::json* value, std::string path);
  [[noreturn]] void wrong_type(std::string_view expected) const;

  std::shared_ptr<const Document> document_;
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace lockstep::io
