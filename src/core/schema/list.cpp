// Options of a struct: look-up, values that are set, rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/files/endings.hpp"
#include "lockstep/schema.hpp"

namespace lockstep {
namespace {

void check_ending(const OptionList& list, const Option& option, const OptionValue& value) {
  const auto* name = std::get_if<std::string>(&value);
  if (const std::string ending = name ? other_ending(*name, option.endings) : ""; !ending.empty())
    throw list.error({OptionError::Kind::invalid, option.name, fmt::format("'{}' ends in {}", *name, ending),
                      fmt::format("a name in {}", fmt::join(option.endings, " or ")), ""});
}

}  // namespace

OptionBuilder& OptionBuilder::among(std::vector<std::string> names) {
  o_->kind = Option::Kind::choice;
  o_->choices = std::move(names);
  o_->placeholder = fmt::format("{}", fmt::join(o_->choices, "|"));
  return *this;
}

Option& OptionList::add(Option option) {
  if (find(option.name)) throw InternalError("option " + option.name + " twice", type_, "each option once");
  option.flag = option.name;
  std::replace(option.flag.begin(), option.flag.end(), '_', '-');
  option.member = type_ + "::" + option.name;
  option.placeholder = option.kind == Option::Kind::choice ? fmt::format("{}", fmt::join(option.choices, "|"))
                       : option.kind == Option::Kind::text ? "TEXT"
                                                           : "N";
  if (option.kind == Option::Kind::natural) option.low = 0;
  option.heading = heading_;
  if (option.kind == Option::Kind::flag && std::get<bool>(option.get(defaults()))) {
    option.negated = true;
    option.flag = "no-" + option.flag;
  }
  return options_.emplace_back(std::move(option));
}

const Option* OptionList::find(std::string_view name) const {
  const auto found =
      std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

const Option* OptionList::find_former(std::string_view name) const {
  std::string flag(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  for (const Option& option : options_)
    if (std::find(option.former.begin(), option.former.end(), flag) != option.former.end()) return &option;
  return nullptr;
}

const Option& OptionList::at(std::string_view name) const {
  const Option* found = find(name);
  if (!found) throw InternalError(fmt::format("no option {}", name), type_, "an option of it");
  return *found;
}

Option& OptionList::find_mutable(std::string_view name) { return const_cast<Option&>(at(name)); }

const OptionGroup* OptionList::group_of(std::string_view option) const {
  for (const OptionGroup& group : groups_)
    if (group.syntax.find(fmt::format("{{{}}}", option)) != std::string::npos) return &group;
  return nullptr;
}

void OptionList::set(void* options, const std::string& name, const OptionValue& value, Given& given) const {
  const Option& option = at(name);
  check_value(options, option, value);
  try {
    option.set(options, value);
  } catch (const OptionError& e) {
    const OptionError::Parts& p = e.parts();
    throw error({p.kind, name, p.what, p.expected.empty() ? option.expected() : p.expected, p.hint});
  } catch (const InputError&) { refuse(nullptr, option, value); }
  given.insert(name);
}

void OptionList::check(const void* options) const {
  for (const Option& option : options_) {
    check_value(options, option, option.get(options));
    check_ending(*this, option, option.get(options));
  }
}

void OptionList::finish(void* options, const Given& given) const {
  using Error = OptionError::Kind;
  for (const Option& option : options_)
    if (option.required && !given.contains(option.name))
      throw error({Error::missing, "", fmt::format("{{{}}} is missing", option.name), "", ""});
  for (const Option& option : options_)
    if (given.contains(option.name)) check_ending(*this, option, option.get(options));
  for (const Work& work : prepared_) work(options, given);
  for (const Rule& rule : rules_) {
    const bool has = given.contains(rule.option);
    if (rule.kind == Error::conflict) {
      if (has && given.contains(rule.other))
        throw error(
            {rule.kind, "", fmt::format("{{{}}} with {{{}}}", rule.option, rule.other), "one of them", ""});
    } else if (has != (rule.kind == Error::missing) && find(rule.option) && rule.broken(options)) {
      throw error({rule.kind, rule.option, rule.what, rule.expected, ""});
    }
  }
  for (const Work& work : derived_) work(options, given);
}

}  // namespace lockstep
