// Errors of options in the words of C++, the shell and Python.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/schema.hpp"

namespace lockstep {

std::string spelled(const std::string& text, const Wording& words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('{', at), close = open == text.npos ? open : text.find('}', open);
    if (close == text.npos) return out + text.substr(at);
    out += text.substr(at, open - at) + words.name(text.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return out;
}

namespace {

std::string where_of(const OptionError::Parts& p, const Wording& words) {
  if (!p.place.empty()) return p.place;
  if (p.where.empty()) return words.call;
  return p.where.find('{') == p.where.npos ? words.where(p.where) : spelled(p.where, words);
}

/// "a" or "{a} with {b}", as the words have it.
std::string what_of(const OptionError::Parts& p, const Wording& words) {
  std::string what = p.what;
  if (p.kind == OptionError::Kind::conflict)
    if (const size_t with = what.find("} with {"); with != what.npos) what.replace(with + 1, 6, words.with);
  return spelled(what, words);
}

}  // namespace

OptionError::OptionError(Parts parts, const Wording& words)
    : InputError(what_of(parts, words), where_of(parts, words), spelled(parts.expected, words)),
      parts_(std::move(parts)) {
  if (!parts_.hint.empty()) with_hint(spelled(parts_.hint, words));
}

std::string OptionError::option() const {
  const std::string& text = parts_.where.empty() ? parts_.what : parts_.where;
  const size_t open = text.find('{');
  return open == text.npos ? text : text.substr(open + 1, text.find('}', open) - open - 1);
}

OptionError bad_text(std::string what, std::string expected, std::string where) {
  const auto plain = [](const std::string& name) { return name; };
  return {{OptionError::Kind::invalid, "", std::move(what), std::move(expected), ""},
          {plain, plain, std::move(where)}};
}

Wording OptionList::in_cpp() const {
  const auto name = [this](const std::string& option) {
    const Option* known = find(option);
    return known ? known->member : option;
  };
  return {name, name, type_};
}

Wording OptionList::in_shell(const std::string& call) const {
  const auto name = [this](const std::string& option) -> std::string {
    if (const OptionGroup* group = group_of(option)) return "--" + group->flag;
    const Option* known = find(option);
    if (!known) return option;
    return known->positional ? known->flag : "--" + known->flag;
  };
  return {name, name, call};
}

Wording OptionList::in_python(const std::string& call) const {
  const auto name = [this](const std::string& option) -> std::string {
    const OptionGroup* group = group_of(option);
    return group && group->pair && !group->apart ? group->flag : option;
  };
  const auto where = [name, call](const std::string& option) {
    return fmt::format("{}, argument {}=", call, name(option));
  };
  return {name, where, call, " and "};
}

std::string nearest_name(const std::string& word, const std::vector<std::string>& names) {
  const auto edits = [](const std::string& a, const std::string& b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t k = 0; k <= b.size(); ++k) row[k] = k;
    for (size_t i = 1; i <= a.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t k = 1; k <= b.size(); ++k) {
        const size_t above = row[k];
        row[k] = std::min({above + 1, row[k - 1] + 1, diagonal + (a[i - 1] == b[k - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    return row[b.size()];
  };
  std::string nearest;
  size_t distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names)
    if (const size_t d = edits(word, name); d < distance) {
      distance = d;
      nearest = name;
    }
  return nearest;
}

}  // namespace lockstep
