// TOML files, read by toml++: tables, arrays, strings, integers, floats, booleans, each with its line
// number. Dates are refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::io {

class TomlValue;
using TomlArray = std::vector<TomlValue>;
/// Members in the file's order.
using TomlTable = std::vector<std::pair<std::string, TomlValue>>;

/// A value, and the line where it stands for errors about its meaning.
class TomlValue {
 public:
  using Content = std::variant<bool, int64_t, double, std::string, TomlArray, TomlTable>;
  TomlValue(Content content, int line) : content_(std::move(content)), line_(line) {}

  const Content& content() const { return content_; }
  Content& content() { return content_; }
  int line() const { return line_; }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&content_);
  }
  /// The number, whether written as integer or float; throws InputError naming `where` and the line
  /// otherwise.
  double number(std::string_view where) const;
  int64_t integer(std::string_view where) const;
  const std::string& text(std::string_view where) const;
  bool boolean(std::string_view where) const;
  const TomlArray& array(std::string_view where) const;
  const TomlTable& table(std::string_view where) const;
  /// "integer", "array", …
  const char* kind() const;

 private:
  Content content_;
  int line_;
};

/// The member of that name, or null.
const TomlValue* find(const TomlTable& table, std::string_view key);

/// Throws InputError that names `where` and the line of the mistake.
TomlTable parse_toml(std::string_view text, std::string_view where);
TomlTable read_toml(const std::filesystem::path& path);

}  // namespace lockstep::io
