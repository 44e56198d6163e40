// Tests over all options of a schema: properties that each option must have, for any caller.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include "lockstep/schema.hpp"

namespace lockstep::test {

/// Values that an option refuses.
inline std::vector<OptionValue> values_outside(const Option& o) {
  std::vector<OptionValue> bad;
  const auto number = [&](double v) {
    if (o.off && v == *o.off) return;
    if (o.list)
      bad.emplace_back(std::to_string(static_cast<int64_t>(v)));
    else if (o.kind == Option::Kind::number)
      bad.emplace_back(v);
    else if (o.kind == Option::Kind::whole)
      bad.emplace_back(static_cast<int64_t>(v));
  };
  if (o.kind == Option::Kind::choice || !o.form.empty()) bad.emplace_back(std::string("no such thing"));
  if (o.kind == Option::Kind::number && o.list) {
    for (const char* text : {"nan", "inf", "1,"}) bad.emplace_back(std::string(text));
  } else if (o.kind == Option::Kind::number) {
    bad.emplace_back(std::nan("")), bad.emplace_back(-HUGE_VAL);
    if (o.off != HUGE_VAL) bad.emplace_back(HUGE_VAL);
  }
  if (o.kind == Option::Kind::number || o.kind == Option::Kind::whole) {
    if (std::isfinite(o.low)) number(o.low_open ? o.low : o.low - std::max(1.0, std::abs(o.low) * 1e-9));
    if (std::isfinite(o.high)) number(o.high_open ? o.high : o.high + std::max(1.0, o.high * 1e-9));
  }
  return bad;
}

/// Another valid value than `now`, for an option of any kind.
inline OptionValue other_value(const Option& o, const OptionValue& now) {
  switch (o.kind) {
    case Option::Kind::flag: return !std::get<bool>(now);
    case Option::Kind::choice:
      for (const std::string& c : o.choices)
        if (OptionValue(c) != now) return c;
      return now;
    case Option::Kind::text: return o.example.empty() ? "other" : o.example;
    case Option::Kind::natural: return uint64_t{7919};
    case Option::Kind::whole: {
      const auto low = static_cast<int64_t>(std::max(o.low, 1.0));
      if (o.list) return std::to_string(low + 1);
      return now == OptionValue(low + 1) ? low + 2 : low + 1;
    }
    case Option::Kind::number: {
      const double low = std::isfinite(o.low) ? o.low : 0, high = std::isfinite(o.high) ? o.high : low + 1;
      const double middle = low + (std::min(high, low + 1) - low) / 3;
      if (o.list) return text_of(middle);
      return now == OptionValue(middle) ? low + (std::min(high, low + 1) - low) / 2 : middle;
    }
  }
  return now;
}

/// The text between two marker lines of a document is `now`; with LOCKSTEP_UPDATE it is written.
inline void expect_committed(const std::string& path, const std::string& marker, const std::string& now) {
  std::stringstream file;
  file << std::ifstream(path).rdbuf();
  const std::string all = file.str(), begin = "<!-- " + marker + " -->\n", end = "<!-- end -->";
  const size_t from = all.find(begin), to = from == all.npos ? from : all.find(end, from);
  ASSERT_NE(to, all.npos) << path << " has no " << begin;
  const size_t first = from + begin.size();
  if (std::getenv("LOCKSTEP_UPDATE"))
    std::ofstream(path) << all.substr(0, first) + now + all.substr(to);
  else
    EXPECT_EQ(all.substr(first, to - first), now) << "LOCKSTEP_UPDATE=1 writes it anew";
}

/// Every value out of range is refused, and the error names the option as each caller knows it.
inline void expect_refusals(const OptionList& list, const std::function<std::shared_ptr<void>()>& made) {
  const Wording shell = list.in_shell("lockstep command"), python = list.in_python("lockstep.command");
  for (const Option& o : list.options())
    for (const OptionValue& bad : values_outside(o)) {
      const std::shared_ptr<void> options = made();
      Given given;
      try {
        list.set(options.get(), o.name, bad, given);
        ADD_FAILURE() << o.name << " accepts " << text_of(bad);
      } catch (const OptionError& e) {
        EXPECT_EQ(e.kind(), OptionError::Kind::invalid);
        EXPECT_EQ(e.option(), o.name);
        const auto has = [&](const OptionError& error, const std::string& text) {
          EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what() << " / " << text;
        };
        has(e, "[" + o.member + "]");
        has(e.in(shell), "[" + shell.name(o.name) + "]");
        has(e.in(python), "argument " + python.name(o.name) + "=]");
        if (o.form.empty())
          has(e, o.expected());
        else  // the reader of a text may know better
          EXPECT_FALSE(e.parts().expected.empty()) << e.what();
      }
    }
}

/// Each default, and each other value, survives its text.
inline void expect_texts(const OptionList& list, const std::function<std::shared_ptr<void>()>& made) {
  for (const Option& o : list.options()) {
    if (o.member.empty()) continue;  // nothing holds its value
    const std::shared_ptr<void> options = made();
    const OptionValue plain = list.value(options.get(), o.name), changed = other_value(o, plain);
    EXPECT_NE(plain, changed) << o.name;
    Given given;
    for (const OptionValue& value : {changed, plain}) {
      if (value == plain && o.required) continue;  // the default of a required option is none
      list.set(options.get(), o.name, changed, given);
      EXPECT_EQ(list.value(options.get(), o.name), changed) << o.name;
      const std::string text =
          value == changed ? list.text(options.get(), o.name) : list.default_text(o.name);
      if (text.empty()) continue;  // none
      list.set_text(options.get(), o.name, text, given);
      EXPECT_EQ(list.value(options.get(), o.name), value) << o.name << " " << text;
    }
  }
}

/// Both of all options of a struct.
template <class Options>
void walk() {
  const auto made = [] { return std::make_shared<Options>(); };
  expect_refusals(schema_of<Options>(), made);
  expect_texts(schema_of<Options>(), made);
}

/// Whether an enumeration's table has all of its values: one without a name would print as "?".
template <class E>
bool is_complete() {
  int k = 0;
  while (k < 64 && name_among(choices(E{}), E(k)) != "?") ++k;
  return size_t(k) == choices(E{}).size();
}

/// The shell's error for options by their names, or empty.
template <class Options>
std::string refusal(Options& options, Given given,
                    const std::vector<std::pair<std::string, std::string>>& texts) {
  const OptionList& list = schema_of<Options>();
  try {
    for (const auto& [name, text] : texts) list.set_text(&options, name, text, given);
    list.finish(&options, given);
  } catch (const OptionError& e) { return e.in(list.in_shell("lockstep command")).what(); }
  return "";
}

}  // namespace lockstep::test
