#include "io/text/toml.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr int kMaximumDepth = 100;

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}
bool is_control(char c) { return (static_cast<unsigned char>(c) < 32 && c != '\t') || c == 127; }

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
    if (length == 0 || length > text.size() - at) return false;
    uint32_t code = length == 1 ? lead : lead & (0x7fu >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[at + k]);
      if ((byte & 0xc0) != 0x80) return false;
      code = code << 6 | (byte & 0x3f);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    at += length;
  }
  return true;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 63));
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

// How a table came to be decides what may be added to it later.
enum class Origin { implicit, header, dotted, closed };

// The document while it grows: `origin` holds for tables, `is_table_array` for arrays made by [[…]].
struct Member;
struct Node {
  TomlValue::Content content;
  int line = 0;
  Origin origin = Origin::closed;
  bool is_table_array = false;
  std::vector<Member> members;  // If it is a table.
  std::vector<Node> items;      // If it is an array.

  bool is_table() const { return std::holds_alternative<TomlTable>(content); }
  Node* member(std::string_view key);
  Node* add(std::string key, Node node);
};
struct Member {
  std::string name;
  Node node;
};

Node* Node::member(std::string_view key) {
  for (Member& m : members) {
    if (m.name == key) return &m.node;
  }
  return nullptr;
}
Node* Node::add(std::string key, Node node) {
  return &members.emplace_back(Member{std::move(key), std::move(node)}).node;
}

TomlTable finish_members(Node& node);

TomlValue finish(Node& node) {
  if (node.is_table()) return TomlValue(finish_members(node), node.line);
  if (std::holds_alternative<TomlArray>(node.content)) {
    TomlArray array;
    for (Node& item : node.items) array.push_back(finish(item));
    return TomlValue(std::move(array), node.line);
  }
  return TomlValue(std::move(node.content), node.line);
}

TomlTable finish_members(Node& node) {
  TomlTable table;
  for (Member& m : node.members) table.emplace_back(m.name, finish(m.node));
  return table;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  TomlTable parse() {
    if (!is_utf8(text_)) fail("the text is not UTF-8", "UTF-8");
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    Node root = make_table(Origin::header);
    Node* current = &root;
    while (skip_to_content(), at_ < text_.size()) {
      if (peek() == '[') {
        current = header(root);
      } else {
        key_value(*current, 0);
      }
      end_of_line();
    }
    return finish_members(root);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    throw InputError(what, fmt::format("{}:{}", where_, line_), expected);
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool at_end() const { return at_ >= text_.size(); }
  bool at_newline() const { return peek() == '\n' || (peek() == '\r' && peek(1) == '\n'); }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  void skip_comment() {
    if (peek() != '#') return;
    while (!at_end() && !at_newline()) {
      if (is_control(peek())) fail("a control character in a comment", "printable text");
      ++at_;
    }
  }
  bool take_newline() {
    if (!at_newline()) return false;
    at_ += peek() == '\r' ? 2 : 1;
    ++line_;
    return true;
  }
  void skip_to_content() {
    do {
      skip_blanks();
      skip_comment();
    } while (take_newline());
  }
  void end_of_line() {
    skip_blanks();
    skip_comment();
    if (!at_end() && !take_newline())
      fail(fmt::format("unexpected '{}'", printable(peek())), "the end of the line");
  }
  static std::string printable(char c) {
    return is_control(c) || static_cast<unsigned char>(c) > 127
               ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c))
               : std::string(1, c);
  }
  Node make_table(Origin origin) const {
    Node node;
    node.content = TomlTable{};
    node.line = line_;
    node.origin = origin;
    return node;
  }

  std::string key_part() {
    if (peek() == '"' || peek() == '\'') {
      if (peek(1) == peek() && peek(2) == peek()) fail("a key over several lines", "a key on one line");
      return string();
    }
    const size_t start = at_;
    while (is_bare(peek())) ++at_;
    if (at_ == start)
      fail(at_end() ? "the file ends" : fmt::format("unexpected '{}'", printable(peek())), "a key");
    return std::string(text_.substr(start, at_ - start));
  }
  std::vector<std::string> key() {
    std::vector<std::string> parts;
    while (true) {
      skip_blanks();
      parts.push_back(key_part());
      if (parts.size() > kMaximumDepth) fail("a key of too many parts", "at most 100 parts");
      skip_blanks();
      if (peek() != '.') return parts;
      ++at_;
    }
  }
  static std::string joined(const std::vector<std::string>& parts) {
    return fmt::format("{}", fmt::join(parts, "."));
  }

  Node* header(Node& root) {
    ++at_;
    const bool array = peek() == '[';
    if (array) ++at_;
    const std::vector<std::string> parts = key();
    if (peek() != ']' || (array && peek(1) != ']')) fail("the header is not closed", array ? "]]" : "]");
    at_ += array ? 2 : 1;
    Node* node = &root;
    for (size_t k = 0; k + 1 < parts.size(); ++k) node = step_into(*node, parts, k);
    Node* last = node->member(parts.back());
    if (array) {
      if (!last) {
        Node made;
        made.content = TomlArray{};
        made.line = line_;
        made.is_table_array = true;
        last = node->add(parts.back(), std::move(made));
      } else if (!last->is_table_array) {
        fail(fmt::format("'{}' exists already", joined(parts)), "a new name, or more of an array of tables");
      }
      return &last->items.emplace_back(make_table(Origin::header));
    }
    if (!last) return node->add(parts.back(), make_table(Origin::header));
    if (!last->is_table() || last->origin != Origin::implicit) {
      fail(fmt::format("'{}' exists already", joined(parts)), "each table once");
    }
    last->origin = Origin::header;
    last->line = line_;
    return last;
  }
  Node* step_into(Node& from, const std::vector<std::string>& parts, size_t k) {
    Node* next = from.member(parts[k]);
    if (!next) return from.add(parts[k], make_table(Origin::implicit));
    if (next->is_table_array) return &next->items.back();
    if (!next->is_table() || next->origin == Origin::closed)
      fail(fmt::format("'{}' is no table", parts[k]), "a table");
    return next;
  }

  void key_value(Node& table, int depth) {
    const std::vector<std::string> parts = key();
    if (peek() != '=') fail(fmt::format("'{}' has no value", joined(parts)), "=");
    ++at_;
    skip_blanks();
    Node* node = &table;
    for (size_t k = 0; k + 1 < parts.size(); ++k) {
      Node* next = node->member(parts[k]);
      if (!next) {
        next = node->add(parts[k], make_table(Origin::dotted));
      } else if (!next->is_table() || next->origin != Origin::dotted) {
        fail(fmt::format("'{}' exists already", parts[k]), "a name that is free");
      }
      node = next;
    }
    if (node->member(parts.back()))
      fail(fmt::format("'{}' stands here twice", joined(parts)), "each key once");
    Node made = value(depth + 1);
    node->add(parts.back(), std::move(made));
  }

  Node value(int depth) {
    if (depth > kMaximumDepth) fail("values are nested too deep", "at most 100 levels");
    Node node;
    node.line = line_;
    const char c = peek();
    if (c == '"' || c == '\'') {
      node.content = string();
    } else if (c == '[') {
      array(node, depth);
    } else if (c == '{') {
      inline_table(node, depth);
    } else {
      node.content = scalar();
    }
    return node;
  }
  void array(Node& node, int depth) {
    node.content = TomlArray{};
    ++at_;
    while (true) {
      skip_to_content();
      if (peek() == ']') break;
      if (at_end()) fail("the array is not closed", "]");
      node.items.push_back(value(depth + 1));
      skip_to_content();
      if (peek() == ',') {
        ++at_;
      } else if (peek() != ']') {
        fail("the array is not closed", ", or ]");
      }
    }
    ++at_;
  }
  void inline_table(Node& node, int depth) {
    node = make_table(Origin::closed);
    ++at_;
    skip_blanks();
    if (peek() == '}') {
      ++at_;
      return;
    }
    while (true) {
      key_value(node, depth);
      skip_blanks();
      const char c = peek();
      if (c != ',' && c != '}') fail("the inline table is not closed", ", or }");
      ++at_;
      if (c == '}') break;
    }
    for (Member& m : node.members) {
      if (m.node.origin == Origin::dotted) m.node.origin = Origin::closed;
    }
  }

  std::string string() {
    const char quote = peek();
    const bool several = peek(1) == quote && peek(2) == quote;
    const bool literal = quote == '\'';
    at_ += several ? 3 : 1;
    if (several) take_newline();
    std::string out;
    while (true) {
      if (at_end() || (!several && at_newline()))
        fail("the string is not closed", std::string(several ? 3 : 1, quote));
      const char c = peek();
      if (c == quote) {
        if (!several) {
          ++at_;
          return out;
        }
        size_t run = 0;
        while (peek(run) == quote) ++run;
        if (run >= 3) {
          // Up to two quotes may stand directly before the closing three.
          const size_t inside = std::min<size_t>(run - 3, 2);
          out.append(inside, quote);
          at_ += inside + 3;
          return out;
        }
        out.append(run, quote);
        at_ += run;
      } else if (at_newline()) {
        take_newline();
        out += '\n';
      } else if (c == '\\' && !literal) {
        escape(out, several);
      } else if (is_control(c)) {
        fail("a control character in a string", "an escape such as \\n");
      } else {
        out += c;
        ++at_;
      }
    }
  }
  void escape(std::string& out, bool several) {
    const char c = peek(1);
    constexpr std::string_view kNames = "btnfr\"\\", kValues = "\b\t\n\f\r\"\\";
    if (const size_t known = kNames.find(c); c != '\0' && known != std::string_view::npos) {
      out += kValues[known];
      at_ += 2;
      return;
    }
    if (c == 'u' || c == 'U') {
      const size_t count = c == 'u' ? 4 : 8;
      uint32_t code = 0;
      const std::string_view digits = text_.substr(std::min(at_ + 2, text_.size()), count);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
      if (error != std::errc() || end != digits.data() + count || digits.size() != count || code > 0x10ffff ||
          (code >= 0xd800 && code < 0xe000)) {
        fail("a malformed Unicode escape", "\\uXXXX or \\UXXXXXXXX of a character");
      }
      append_utf8(out, code);
      at_ += 2 + count;
      return;
    }
    if (several) {
      // A backslash at the end of a line swallows the blanks up to the next text.
      size_t ahead = 1;
      while (peek(ahead) == ' ' || peek(ahead) == '\t') ++ahead;
      if (peek(ahead) == '\n' || (peek(ahead) == '\r' && peek(ahead + 1) == '\n')) {
        at_ += ahead;
        do skip_blanks();
        while (take_newline());
        return;
      }
    }
    fail("an unknown escape", R"(\b \t \n \f \r \" \\ \uXXXX or \UXXXXXXXX)");
  }

  TomlValue::Content scalar() {
    const size_t start = at_;
    while (!at_end() && (is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':')) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word == "true") return true;
    if (word == "false") return false;
    if (const auto special = special_float(word)) return *special;
    if (const auto number = integer(word)) return *number;
    if (const auto number = floating(word)) return *number;
    if (word.empty())
      fail(
          at_end() || at_newline() ? "a value is missing" : fmt::format("unexpected '{}'", printable(peek())),
          "a value");
    fail(fmt::format("'{}' is no value", word), "a string in quotes, a number, true or false");
  }
  static std::optional<double> special_float(std::string_view word) {
    const bool negative = word.starts_with('-');
    if (negative || word.starts_with('+')) word.remove_prefix(1);
    const double sign = negative ? -1.0 : 1.0;
    if (word == "inf") return sign * std::numeric_limits<double>::infinity();
    if (word == "nan") return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
    return std::nullopt;
  }
  // Digits with single underscores between them, without which they are returned; nothing if malformed.
  template <class IsDigit>
  static std::optional<std::string> plain_digits(std::string_view word, IsDigit is_digit) {
    std::string out;
    for (size_t k = 0; k < word.size(); ++k) {
      if (word[k] == '_') {
        if (k == 0 || k + 1 == word.size() || !is_digit(word[k - 1]) || !is_digit(word[k + 1]))
          return std::nullopt;
      } else if (is_digit(word[k])) {
        out += word[k];
      } else {
        return std::nullopt;
      }
    }
    if (out.empty()) return std::nullopt;
    return out;
  }
  static bool is_decimal(char c) { return c >= '0' && c <= '9'; }
  std::optional<int64_t> integer(std::string_view word) {
    int base = 10;
    std::string sign;
    if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'o' || word[1] == 'b')) {
      base = word[1] == 'x' ? 16 : word[1] == 'o' ? 8 : 2;
      word.remove_prefix(2);
    } else if (word.starts_with('-') || word.starts_with('+')) {
      if (word[0] == '-') sign = "-";
      word.remove_prefix(1);
    }
    const auto digits = plain_digits(word, [base](char c) {
      const int d = is_decimal(c)          ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : 99;
      return d < base;
    });
    if (!digits || (base == 10 && digits->size() > 1 && digits->front() == '0')) return std::nullopt;
    int64_t number = 0;
    const std::string text = sign + *digits;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc()) fail(fmt::format("the integer {} is too large", text), "an integer of 64 bits");
    return number;
  }
  std::optional<double> floating(std::string_view word) {
    std::string text;
    if (word.starts_with('-') || word.starts_with('+')) {
      if (word[0] == '-') text = "-";
      word.remove_prefix(1);
    }
    const size_t exponent_at = std::min(word.find_first_of("eE"), word.size());
    const std::string_view mantissa = word.substr(0, exponent_at);
    const size_t point = std::min(mantissa.find('.'), mantissa.size());
    const auto whole = plain_digits(mantissa.substr(0, point), is_decimal);
    if (!whole || (whole->size() > 1 && whole->front() == '0')) return std::nullopt;
    text += *whole;
    if (point < mantissa.size()) {
      const auto fraction = plain_digits(mantissa.substr(point + 1), is_decimal);
      if (!fraction) return std::nullopt;
      text += "." + *fraction;
    }
    if (exponent_at < word.size()) {
      std::string_view exponent = word.substr(exponent_at + 1);
      text += "e";
      if (exponent.starts_with('-') || exponent.starts_with('+')) {
        text += exponent[0];
        exponent.remove_prefix(1);
      }
      const auto digits = plain_digits(exponent, is_decimal);
      if (!digits) return std::nullopt;
      text += *digits;
    }
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data() + (text[0] == '+'), text.data() + text.size(), number);
    if (error == std::errc::result_out_of_range)
      fail(fmt::format("the number {} is out of range", text), "a number of 64 bits");
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
  }

  const std::string_view text_, where_;
  size_t at_ = 0;
  int line_ = 1;
};

template <class T>
const T& expect(const TomlValue& value, std::string_view where, const char* wanted) {
  if (const T* found = value.get<T>()) return *found;
  throw InputError(fmt::format("{} found", value.kind()), fmt::format("{}:{}", where, value.line()), wanted);
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

TomlTable parse_toml(std::string_view text, std::string_view where) { return Parser(text, where).parse(); }
TomlTable read_toml(const std::filesystem::path& path) {
  return parse_toml(read_text_file(path, "a TOML file"), path.string());
}

}  // namespace lockstep::io
