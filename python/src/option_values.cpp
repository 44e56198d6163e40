#include "option_values.hpp"

#include <algorithm>

#include "core/schema/shell_flags.hpp"
#include "lockstep/flow/pipeline.hpp"
#include "lockstep/forecast/run.hpp"
#include "lockstep/pde/commands.hpp"
#include "lockstep/solve/run.hpp"
#include "lockstep/urban.hpp"

namespace lockstep::python {
namespace {

using Kind = Option::Kind;

std::string text_of(nb::handle value) { return nb::cast<std::string>(nb::str(value)); }
/// A value of the wrong kind, for errors: that of a text or a number, else the type's name.
std::string shown(nb::handle value) {
  if (nb::isinstance<nb::str>(value) || nb::isinstance<nb::int_>(value) || nb::isinstance<nb::float_>(value))
    return "'" + text_of(value) + "'";
  return "an object of type " + nb::cast<std::string>(value.type().attr("__name__"));
}

template <class T>
std::optional<OptionValue> cast(const nb::object& value) {
  T to{};
  return nb::try_cast(value, to) ? std::optional<OptionValue>(to) : std::nullopt;
}

bool is_parts(nb::handle value) { return !nb::isinstance<nb::str>(value) && nb::hasattr(value, "__iter__"); }
/// A sequence or a dictionary as a text: "1,2", "a=1,b=0:2".
std::string text_of_parts(nb::handle value, const char* between) {
  std::string all;
  const auto add = [&](const std::string& one) { all += (all.empty() ? "" : between) + one; };
  const auto one = [](nb::handle item) { return is_parts(item) ? text_of_parts(item, ":") : text_of(item); };
  if (nb::isinstance<nb::dict>(value))
    for (const auto& [key, item] : nb::cast<nb::dict>(value)) add(text_of(key) + "=" + one(item));
  else
    for (const nb::handle item : value) add(one(item));
  return all;
}

std::optional<OptionValue> value_of(const Option& option, const nb::object& value) {
  if (is_parts(value) && (option.list || !option.parts.empty()))
    return OptionValue(text_of_parts(value, option.list ? "," : option.parts.c_str()));
  if ((option.list && option.kind != Kind::text) || !option.form.empty()) return OptionValue(text_of(value));
  if (option.kind == Kind::choice) {
    // Words may be joined by underscores, as in names.
    std::string text = text_of(value), hyphened = text;
    std::replace(hyphened.begin(), hyphened.end(), '_', '-');
    const bool known =
        std::find(option.choices.begin(), option.choices.end(), hyphened) != option.choices.end();
    return OptionValue(known ? hyphened : text);
  }
  if (option.use != Option::Use::value)
    return cast<std::string>(nb::hasattr(value, "__fspath__") ? value.attr("__fspath__")() : value);
  if (option.kind != Kind::flag && nb::isinstance<nb::bool_>(value)) return std::nullopt;
  switch (option.kind) {
    case Kind::flag: return cast<bool>(value);
    case Kind::whole: return cast<int64_t>(value);
    case Kind::natural: return cast<uint64_t>(value);
    case Kind::number: return cast<double>(value);
    default: return cast<std::string>(value);
  }
}

/// The option that a keyword names, by its name or an earlier one, of which it says the new one.
const Option* option_of(const OptionList& list, const std::string& key, const nb::dict& arguments,
                        const std::string& call) {
  if (const Option* option = list.find(key); option && !is_shell_alone(*option)) return option;
  const Option* option = list.find_former(key);
  if (!option) return nullptr;
  if (arguments.contains(option->name.c_str()))
    throw InputError(key + " and " + option->name, call, option->name + " alone, its new name");
  if (PyErr_WarnFormat(PyExc_FutureWarning, 1, "%s: argument %s is now called %s", call.c_str(), key.c_str(),
                       option->name.c_str()) != 0)
    throw nb::python_error();
  return option;
}

[[noreturn]] void refuse_unknown(const OptionList& list, const std::string& key, const std::string& call) {
  std::vector<std::string> names;
  std::string nearest;
  for (const Option& option : list.options()) {
    if (is_shell_alone(option)) continue;
    names.push_back(option.name);
    if (option.flag == key) nearest = option.name;  // as the shell calls it
  }
  if (nearest.empty()) nearest = nearest_name(key, names);
  throw list
      .error({OptionError::Kind::unknown, "", "argument " + key, "an option of this function",
              nearest.empty() ? "" : "did you mean {" + nearest + "}?"})
      .in(list.in_python(call));
}

const char* type_of(const Option& o) {
  if (o.use != Option::Use::value) return "path";
  if (!o.parts.empty()) return "parts";
  if (!o.form.empty()) return "str or int";
  switch (o.kind) {
    case Kind::flag: return "bool";
    case Kind::whole:
    case Kind::natural: return "int";
    case Kind::number: return "float";
    case Kind::choice: return "choice";
    case Kind::text: return "str";
  }
  return "str";
}

nb::object object_of(const OptionValue& value) {
  return std::visit(
      [](const auto& v) -> nb::object {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return nb::none();
        else
          return nb::cast(v);
      },
      value);
}

}  // namespace

void fill_options(const OptionList& list, void* options, const nb::dict& arguments, const std::string& call,
                  const std::set<std::string>& others, Given had) {
  try {
    std::vector<std::pair<const Option*, OptionValue>> found;
    for (const auto& [key, value] : arguments) {
      const std::string name = text_of(key);
      if (others.contains(name)) continue;
      const Option* option = option_of(list, name, arguments, call);
      if (!option) refuse_unknown(list, name, call);
      if (value.is_none()) continue;
      const auto one = value_of(*option, nb::borrow(value));
      if (!one)
        throw list.error({OptionError::Kind::invalid, option->name, shown(value), option->expected(), ""});
      found.emplace_back(option, *one);
    }
    // Pairs are set before the first is checked, so that an error shows them together.
    for (const auto& [option, value] : found)
      if (const OptionGroup* group = list.group_of(option->name); group && group->pair)
        option->set(options, value);
    for (const auto& [option, value] : found) list.set(options, option->name, value, had);
    list.finish(options, had);
  } catch (const OptionError& e) { throw e.in(list.in_python(call)); }
}

std::vector<std::string> words_of(const OptionList& list, const void* options, const nb::dict& arguments) {
  std::vector<std::string> words;
  std::set<const OptionGroup*> groups;
  for (const Option& option : list.options()) {
    const auto is_given = [&](const std::string& name) {
      return arguments.contains(name.c_str()) && !arguments[name.c_str()].is_none();
    };
    if (!option.in_shell ||
        !(is_given(option.name) || std::any_of(option.former.begin(), option.former.end(), is_given)))
      continue;
    if (const OptionGroup* group = list.group_of(option.name)) {
      if (groups.insert(group).second) words.push_back("--" + group->flag + "=" + list.text(options, *group));
    } else if (option.kind == Kind::flag) {
      if (std::get<bool>(list.value(options, option.name)) != option.negated)
        words.push_back("--" + option.flag);
    } else if (const std::string text = list.text(options, option.name); !text.empty()) {
      words.push_back(option.positional ? text : "--" + option.flag + "=" + text);
    }
  }
  return words;
}

nb::list options_table(const OptionList& list) {
  nb::list rows;
  const Wording words = list.in_python("");
  for (const Option& o : list.options()) {
    if (is_shell_alone(o)) continue;
    const OptionGroup* group = list.group_of(o.name);
    rows.append(dict_of("name", o.name, "argument", words.name(o.name), "flag", group ? group->flag : o.flag,
                        "former", o.former, "member", o.member, "type", type_of(o), "list", o.list,
                        "optional", o.optional || o.off.has_value(), "default",
                        list.default_text(o.name).empty() ? nb::none() : object_of(o.get(list.defaults())),
                        "choices", o.choices, "help", spelled(o.help, words), "unit", o.unit, "expected",
                        o.expected(), "effect", std::string(name(o.effect)), "required", o.required));
  }
  return rows;
}

void bind_options(nb::module_& module) {
  module.def("options", [](const std::string& command) {
    std::vector<std::string> names;
    for (const auto& schemas : {flow::schemas(), forecast::schemas(), pde::schemas(), solve::schemas(),
                                urban::schemas(), forecast_array_schemas(), urban_array_schemas()})
      for (const NamedSchema& known : schemas) {
        if (known.command == command) return options_table(*known.options);
        names.push_back(known.command);
      }
    const std::string nearest = nearest_name(command, names);
    throw InputError("'" + command + "'", "lockstep.options", "a command such as flow.run")
        .with_hint(nearest.empty() ? "" : "did you mean " + nearest + "?");
  });
}

}  // namespace lockstep::python
