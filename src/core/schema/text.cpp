// Values of options as texts and back; help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/numbers/parse_number.hpp"
#include "lockstep/schema.hpp"

namespace lockstep {

std::span<const Choice<Effect>> choices(Effect) {
  static constexpr auto kAll = std::to_array<Choice<Effect>>({{"result", Effect::result},
                                                              {"extent", Effect::extent},
                                                              {"speed", Effect::speed},
                                                              {"display", Effect::display}});
  return kAll;
}

std::string text_of(const OptionValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return "";
        else if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::string>)
          return v;
        else
          return fmt::format("{}", v);
      },
      value);
}

namespace {

using Kind = Option::Kind;

std::string bound_text(double bound, bool whole) {
  return whole ? fmt::format("{}", static_cast<int64_t>(bound)) : fmt::format("{}", bound);
}

/// The value that a text means; none where it means nothing to this kind.
std::optional<OptionValue> parsed(const Option& option, const std::string& text) {
  const auto as = [](const auto& number) {
    return number ? std::optional<OptionValue>(*number) : std::nullopt;
  };
  switch (option.kind) {
    case Kind::flag:
      if (text == "true" || text == "false") return OptionValue(text == "true");
      return std::nullopt;
    case Kind::whole: {
      if (const auto number = parse_number<int64_t>(text)) return as(number);
      const auto number = parse_number<double>(text);  // 1e6
      const bool whole = number && text.find('.') == text.npos && std::abs(*number) < 0x1p53 &&
                         *number == std::floor(*number);
      return whole ? std::optional<OptionValue>(static_cast<int64_t>(*number)) : std::nullopt;
    }
    case Kind::natural: return as(parse_number<uint64_t>(text));
    case Kind::number: return as(parse_number<double>(text));
    default: return OptionValue(text);
  }
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_inside(const Option& o, const OptionValue& value) {
  const auto number = std::visit(
      [](const auto& v) -> std::optional<double> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) return static_cast<double>(v);
        return std::nullopt;
      },
      value);
  if (const auto* text = std::get_if<std::string>(&value); text && !o.form.empty())
    return !text->empty() || o.optional;  // others are refused where they are read
  if (o.kind == Kind::choice && !std::holds_alternative<std::monostate>(value))
    return std::find(o.choices.begin(), o.choices.end(), text_of(value)) != o.choices.end();
  if (!number || (o.off && *number == *o.off)) return true;
  return std::isfinite(*number) && (o.low_open ? *number > o.low : *number >= o.low) &&
         (o.high_open ? *number < o.high : *number <= o.high);
}

/// One field of a group's syntax, and the separator before it.
struct Part {
  std::string separator, name;
  bool optional = false;  // with all that follow
};
std::vector<Part> parts_of(const OptionGroup& group) {
  std::vector<Part> parts;
  std::string separator;
  bool optional = false;
  for (size_t at = 0; at < group.syntax.size(); ++at) {
    const char c = group.syntax[at];
    if (c == '[' || c == ']') {
      optional = optional || c == '[';
    } else if (c == '{') {
      const size_t close = group.syntax.find('}', at);
      parts.push_back({separator, group.syntax.substr(at + 1, close - at - 1), optional});
      separator.clear();
      at = close;
    } else {
      separator += c;
    }
  }
  return parts;
}

}  // namespace

namespace schema_detail {

OptionValue list_value(const std::vector<OptionValue>& items) {
  std::string all;
  for (const OptionValue& item : items) all += (all.empty() ? "" : ",") + text_of(item);
  return all;
}

std::vector<OptionValue> list_items(const Option& option, const std::string& text) {
  std::vector<OptionValue> items;
  if (text.empty()) return items;
  for (const std::string& word : split(text)) {
    const auto item = parsed(option, word);
    if (!item) throw InternalError(fmt::format("'{}'", word), option.name, "a list that was checked");
    items.push_back(*item);
  }
  return items;
}

}  // namespace schema_detail

std::string Option::expected() const {
  std::string one = form.empty() ? "a text" : form;
  const bool has_low = std::isfinite(low), has_high = std::isfinite(high);
  if (kind == Kind::flag) one = "true or false";
  if (kind == Kind::choice) one = fmt::format("one of {}", fmt::join(choices, "|"));
  if (kind == Kind::whole || kind == Kind::natural || kind == Kind::number) {
    const bool whole_number = kind != Kind::number;
    one = whole_number ? "a whole number" : "a number";
    if (has_low && has_high && whole_number && !low_open && !high_open)
      one += fmt::format(" from {} to {}", bound_text(low, true), bound_text(high, true));
    else {
      if (has_low)
        one += fmt::format(" {} {}", low_open ? "above" : "of at least", bound_text(low, whole_number));
      if (has_low && has_high) one += " and";
      if (has_high)
        one += fmt::format(" {} {}",
                           high_open ? "below"
                           : has_low ? "at most"
                                     : "of at most",
                           bound_text(high, whole_number));
    }
  }
  return list ? fmt::format("{}, or several with commas between", one) : one;
}

void OptionList::refuse(const void* options, const Option& option, const OptionValue& value) const {
  std::string what = fmt::format("'{}'", text_of(value));
  const OptionGroup* group = group_of(option.name);
  const std::string& said = group ? group->in_errors : option.in_errors;
  if (options && !said.empty()) {
    what = said;
    for (const std::string& member : group ? members_of(*group) : std::vector{option.name})
      if (const size_t at = what.find("{" + member + "}"); at != what.npos)
        what.replace(at, member.size() + 2,
                     member == option.name ? text_of(value) : text_of(this->value(options, member)));
  }
  throw error({OptionError::Kind::invalid, option.name, what, option.expected(), ""});
}

void OptionList::check_value(const void* options, const Option& option, const OptionValue& value) const {
  if (const auto* all = std::get_if<std::string>(&value); all && option.list) {
    if (all->empty() && !option.required) return;
    std::set<std::string> seen;
    for (const std::string& word : split(*all)) {
      const auto item = parsed(option, word);
      if (!item || word.empty() || !is_inside(option, *item)) refuse(nullptr, option, word);
      if (option.use == Option::Use::value && !seen.insert(text_of(*item)).second)
        throw error(
            {OptionError::Kind::conflict, option.name, fmt::format("{} twice", word), "each once", ""});
    }
    return;
  }
  if (!is_inside(option, value)) refuse(options, option, value);
}

void OptionList::set_text(void* options, const std::string& name, const std::string& text,
                          Given& given) const {
  const Option& option = at(name);
  if (text.empty())
    throw error({OptionError::Kind::invalid, name, "an empty text",
                 option.kind == Kind::text && option.form.empty() ? "a value" : option.expected(), ""});
  if (option.list) return set(options, name, text, given);
  const auto value = parsed(option, text);
  if (!value || (option.off && parse_number<double>(text) == option.off)) refuse(nullptr, option, text);
  try {
    set(options, name, *value, given);
  } catch (const OptionError& e) {
    // As it was typed, rather than as it was read.
    OptionError::Parts parts = e.parts();
    if (parts.what == fmt::format("'{}'", text_of(*value))) parts.what = fmt::format("'{}'", text);
    throw error(parts);
  }
}

void OptionList::set_group(void* options, const OptionGroup& group, const std::string& text,
                           Given& given) const {
  const std::vector<Part> parts = parts_of(group);
  std::vector<std::string> words;
  size_t begin = 0;
  for (size_t k = 0; k < parts.size() && begin != text.npos; ++k) {
    const size_t end = k + 1 < parts.size() ? text.find(parts[k + 1].separator, begin) : text.npos;
    words.push_back(text.substr(begin, end == text.npos ? end : end - begin));
    begin = end == text.npos ? end : end + parts[k + 1].separator.size();
  }
  const bool whole = words.size() == parts.size() || parts[words.size()].separator.empty() ||
                     (parts[words.size()].optional && !parts[words.size() - 1].optional);
  const bool has_end = words.size() == parts.size();
  bool filled = true;
  for (const std::string& word : words) filled = filled && !word.empty();
  if (!whole || !filled)
    throw error({OptionError::Kind::invalid, parts.front().name, fmt::format("'{}'", text),
                 group.expected.empty() ? placeholder_of(group) : group.expected, ""});
  if (group.pair && !has_end) words.push_back(words.front());
  // All are read before the first is checked, so that an error shows them together.
  for (size_t k = 0; k < words.size(); ++k) {
    const Option& option = at(parts[k].name);
    const auto value = parsed(option, words[k]);
    if (!value) refuse(nullptr, option, words[k]);
    if (!group.in_errors.empty()) option.set(options, *value);
  }
  for (size_t k = 0; k < words.size(); ++k) set_text(options, parts[k].name, words[k], given);
}

OptionValue OptionList::value(const void* options, const std::string& name) const {
  return at(name).get(options);
}

std::string OptionList::text(const void* options, const std::string& name) const {
  const std::string text = text_of(value(options, name));
  const std::optional<double> off = at(name).off;
  return off && parse_number<double>(text) == off ? "" : text;
}

std::string OptionList::text(const void* options, const OptionGroup& group) const {
  const std::vector<Part> parts = parts_of(group);
  bool tail = false;
  for (const Part& part : parts)
    if (part.optional) tail = tail || text(options, part.name) != text(defaults(), part.name);
  if (group.pair) tail = text(options, parts.front().name) != text(options, parts.back().name);
  std::string all;
  bool some = false;
  for (const Part& part : parts) {
    if (part.optional && !tail) continue;
    const std::string one = text(options, part.name);
    some = some || !one.empty();
    all += part.separator + one;
  }
  return some ? all : "";
}

std::vector<std::string> OptionList::members_of(const OptionGroup& group) const {
  std::vector<std::string> names;
  for (const Part& part : parts_of(group)) names.push_back(part.name);
  return names;
}

std::string OptionList::placeholder_of(const OptionGroup& group) const {
  if (!group.placeholder.empty()) return group.placeholder;
  std::string all;
  bool open = false;
  for (const Part& part : parts_of(group)) {
    if (part.optional && !open) all += "[", open = true;
    all += part.separator + at(part.name).placeholder;
  }
  return open ? all + "]" : all;
}

namespace {

std::string with_default(std::string help, const std::string& text, const std::string& note) {
  if (text.empty()) return note.empty() ? help : help + fmt::format(" (default: {})", note);
  return help + fmt::format(" (default {}{}{})", text, note.empty() ? "" : ", ", note);
}

}  // namespace

std::string OptionList::help_of(const Option& option, const Wording& words) const {
  const bool has_default = option.kind != Option::Kind::flag && !option.required;
  const std::string help =
      (option.negated ? "no " : "") +
      (option.unit.empty() ? option.help : fmt::format("{}, {}", option.help, option.unit));
  return spelled(with_default(help, has_default ? default_text(option.name) : "", option.default_note),
                 words);
}

std::string OptionList::help_of(const OptionGroup& group, const Wording& words) const {
  return spelled(with_default(group.help, default_text(group), at(members_of(group).front()).default_note),
                 words);
}

}  // namespace lockstep
