// One declaration of a struct of options. Command line options, TOML keys, records, Python keywords, stubs and reference
// tables are generated from it. So are error messages, which use the spelling of their caller.
//
//   struct Stepping { Integrator integrator = Integrator::rk4; double dt = 1e-3; };
//   void describe(Schema<Stepping>& s) {
//     s.of("flow::Stepping");
//     s.option("integrator", &Stepping::integrator, "time stepping");
//     s.option("dt", &Stepping::dt, "time step").above(0).shown("DT");
//   }
//   schema_of<Stepping>().set_text(&stepping, "dt", "2e-3", given);
//
// Defaults are those of the struct. The names of an enumeration are those of its choices(E). Design:
// docs/design/options.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep {

/// An enumerator and its name in options. `choices(E)` returns the table of an enumeration.
template <class E>
struct Choice {
  std::string_view name;
  E value;
};
template <class E>
std::string_view name_among(std::span<const Choice<E>> all, E value) {
  for (const Choice<E>& c : all)
    if (c.value == value) return c.name;
  return "?";
}

/// The effect of an option: on the numbers of the result, on the length of the run (which can be extended), on the
/// speed, or on none of these.
enum class Effect : uint8_t { result, extent, speed, display };
std::span<const Choice<Effect>> choices(Effect);
inline std::string_view name(Effect effect) { return name_among(choices(effect), effect); }

/// Names of the options that a caller specified.
using Given = std::set<std::string>;
/// The value of an option in a front end; monostate: no value.
using OptionValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string>;

/// A text that is read back as the same value; empty for no value.
std::string text_of(const OptionValue& value);

/// How a front end spells options.
struct Wording {
  std::function<std::string(const std::string& option)> name;   // in a sentence: --dt, dt, Stepping::dt
  std::function<std::string(const std::string& option)> where;  // as the location of an error, in brackets
  std::string call;             // the command or function: "lockstep flow run"
  std::string with = " with ";  // between two options that exclude each other
};

/// The text with each name in braces replaced by words.name of it.
std::string spelled(const std::string& text, const Wording& words);

/// An invalid option. Its texts contain names of options in braces, such as "{integrator} etdrk4 has no limit", so that
/// each front end can use its own spelling. what() uses that of C++.
class OptionError : public InputError {
 public:
  enum class Kind : uint8_t { invalid, conflict, missing, useless, unknown };
  struct Parts {
    Kind kind = Kind::invalid;
    std::string where;  // the name of an option, or a text with names in braces; empty: the call
    std::string what, expected, hint;
    std::string place = {};  // a file, or a line of a file, instead of `where`
  };
  OptionError(Parts parts, const Wording& words);
  const Parts& parts() const { return parts_; }
  Kind kind() const { return parts_.kind; }
  /// The name of the option, or the first one in the texts.
  std::string option() const;
  /// The same error in the spelling of `words`.
  OptionError in(const Wording& words) const { return {parts_, words}; }

 private:
  Parts parts_;
};

/// One option.
struct Option {
  enum class Kind : uint8_t { flag, whole, natural, number, text, choice };
  enum class Use : uint8_t { value, input, output_file, output_folder };

  std::string name;    // in Python and in the texts
  std::string flag;    // in the shell and in TOML, without dashes
  std::string member;  // in C++: flow::Stepping::dt
  std::string help, unit;
  std::string placeholder;  // of the value in help texts
  std::string
      default_note;  // for a default that depends on other options: shown after it, or instead of an empty one
  Kind kind = Kind::text;
  Use use = Use::value;
  Effect effect = Effect::result;
  bool list = false;        // several values, separated by commas
  bool optional = false;    // may be without a value
  bool required = false;    // has no default
  bool positional = false;  // an argument without a flag in the shell
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;
  std::optional<double> off;  // a value out of range that means "not given"
  std::string in_errors;      // the value in errors about its range: "a share of {share}"
  std::string form;           // of a text: "none, or KIND:SCALE"
  std::string example;        // a text of that form
  /// The separator of the parts of a text. Python may then pass a sequence or a dictionary. Empty: it may not.
  std::string parts;
  std::string heading;               // of its section in help texts; empty: none
  bool in_shell = true;              // false: only in C++ and Python
  std::vector<std::string> choices;  // names of the allowed values
  std::vector<std::string> endings;  // of the file's name
  std::vector<std::string> aliases;  // further flags, without dashes
  std::vector<std::string> former;   // earlier names, which still work and report the new one
  bool negated = false;              // true by default; the flag no-NAME sets it to false
  std::function<OptionValue(const void*)> get;
  std::function<void(void*, const OptionValue&)> set;  // of a checked value

  /// "a whole number from 1 to 16", "one of f32|f64".
  std::string expected() const;
};

/// Options that the shell reads from one text, with a syntax such as "{closure}[:{constant}]".
struct OptionGroup {
  std::string flag, syntax, help;
  std::string placeholder;  // empty: the syntax with the placeholders of its options
  std::string expected;     // in the error about a text that does not match; empty: the placeholder
  bool pair = false;        // "{ny}[x{nx}]": a single value applies to both; Python accepts a pair
  std::string in_errors;    // "{ny} x {nx} points"
  bool apart = false;       // Python accepts the two options of a pair under their own names
};

template <class Options>
class Schema;
template <class Options>
const Schema<Options>& schema_of();

/// All options of a struct, without its type. `options` points to such a struct.
class OptionList {
 public:
  const std::vector<Option>& options() const { return options_; }
  const std::vector<OptionGroup>& groups() const { return groups_; }
  const Option* find(std::string_view name) const;
  const Option& at(std::string_view name) const;
  const OptionGroup* group_of(std::string_view option) const;
  /// The option with this name in an earlier release, as a flag or a keyword.
  const Option* find_former(std::string_view name) const;
  /// Names of the options in a group's syntax.
  std::vector<std::string> members_of(const OptionGroup& group) const;

  /// Set an option or a group and record it in `given`. Throw OptionError for values of another kind or out of range.
  void set(void* options, const std::string& name, const OptionValue& value, Given& given) const;
  void set_text(void* options, const std::string& name, const std::string& text, Given& given) const;
  void set_group(void* options, const OptionGroup& group, const std::string& text, Given& given) const;
  /// Call it after all options are set. Throws OptionError for conflicts, missing options and options without effect;
  /// sets dependent options.
  void finish(void* options, const Given& given) const;
  /// Throws OptionError if a value is out of range.
  void check(const void* options) const;

  OptionValue value(const void* options, const std::string& name) const;
  /// The value as a text that set_text() or set_group() reads; empty: no value.
  std::string text(const void* options, const std::string& name) const;
  std::string text(const void* options, const OptionGroup& group) const;
  /// The texts of the struct's own defaults.
  std::string default_text(const std::string& name) const { return text(defaults(), name); }
  std::string default_text(const OptionGroup& group) const { return text(defaults(), group); }
  const void* defaults() const { return defaults_.get(); }
  /// The placeholder of a group's value: "KIND[:K,A]".
  std::string placeholder_of(const OptionGroup& group) const;
  /// The help text of an option or group with its default.
  std::string help_of(const Option& option, const Wording& words) const;
  std::string help_of(const OptionGroup& group, const Wording& words) const;

  Wording in_cpp() const;
  Wording in_shell(const std::string& call) const;
  Wording in_python(const std::string& call) const;
  OptionError error(OptionError::Parts parts) const { return {std::move(parts), in_cpp()}; }

  /// A case that finish() rejects. missing: `option` is not given and `broken` returns true. Other kinds: `option` is
  /// given, and `other` is given too or `broken` returns true.
  struct Rule {
    OptionError::Kind kind = OptionError::Kind::conflict;
    std::string option, other;
    std::function<bool(const void*)> broken;
    std::string what, expected;
  };
  const std::vector<Rule>& rules() const { return rules_; }
  using Work = std::function<void(void*, const Given&)>;
  const std::vector<Work>& prepared() const { return prepared_; }
  const std::vector<Work>& derived() const { return derived_; }

 protected:
  Option& add(Option option);
  Option& find_mutable(std::string_view name);
  [[noreturn]] void refuse(const void* options, const Option& option, const OptionValue& value) const;
  void check_value(const void* options, const Option& option, const OptionValue& value) const;

  std::string type_;
  std::vector<Option> options_;
  std::vector<OptionGroup> groups_;
  std::vector<Rule> rules_;
  std::vector<Work> prepared_, derived_;
  std::string heading_;
  std::shared_ptr<const void> defaults_;
};

/// An error to be thrown by a function that reads the text of an option without knowing the option. If `expected` is
/// empty, the form of the option is used. `where` is the location for callers without options.
OptionError bad_text(std::string what, std::string expected, std::string where = "");
/// The name closest to a word by edit distance, or empty if none is close.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

namespace schema_detail {

OptionValue list_value(const std::vector<OptionValue>& items);
std::vector<OptionValue> list_items(const Option& option, const std::string& text);

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};

template <class T>
constexpr Option::Kind kind_of() {
  if constexpr (IsOptional<T>::value || IsList<T>::value)
    return kind_of<typename T::value_type>();
  else if constexpr (std::is_same_v<T, bool>)
    return Option::Kind::flag;
  else if constexpr (std::is_enum_v<T>)
    return Option::Kind::choice;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return Option::Kind::natural;
  else if constexpr (std::is_integral_v<T>)
    return Option::Kind::whole;
  else if constexpr (std::is_floating_point_v<T>)
    return Option::Kind::number;
  else
    return Option::Kind::text;
}

template <class T>
OptionValue to_value(const T& value, const std::vector<Choice<T>>& choices) {
  for (const Choice<T>& c : choices)
    if (c.value == value) return std::string(c.name);
  if constexpr (std::is_same_v<T, bool>)
    return value;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return value;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<int64_t>(value);
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(value);
  else if constexpr (std::is_same_v<T, std::filesystem::path>)
    return value.string();
  else if constexpr (std::is_same_v<T, std::string>)
    return value;
  else if constexpr (IsOptional<T>::value)
    return std::monostate();
  else
    return std::string("?");
}

template <class T>
T from_value(const OptionValue& value, const std::vector<Choice<T>>& choices) {
  if (const auto* text = std::get_if<std::string>(&value))
    for (const Choice<T>& c : choices)
      if (c.name == *text) return c.value;
  if constexpr (std::is_same_v<T, bool>)
    return std::get<bool>(value);
  else if constexpr (std::is_same_v<T, uint64_t>)
    return std::get<uint64_t>(value);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::get<int64_t>(value));
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(std::get<double>(value));
  else if constexpr (std::is_enum_v<T> || IsOptional<T>::value)
    return {};
  else
    return T(std::get<std::string>(value));
}

template <class T>
struct Element {
  using type = T;
};
template <class T>
struct Element<std::vector<T>> {
  using type = T;
};

/// Names of the enumerators of E, or of the enumeration in std::optional<E>.
template <class E>
std::vector<Choice<E>> names_of() {
  std::vector<Choice<E>> all;
  if constexpr (std::is_enum_v<E>) {
    const auto table = choices(E{});
    all.assign(table.begin(), table.end());
  } else if constexpr (IsOptional<E>::value) {
    for (const auto& c : names_of<typename E::value_type>()) all.push_back({c.name, c.value});
  }
  return all;
}

}  // namespace schema_detail

/// Completes the last added option.
class OptionBuilder {
 public:
  explicit OptionBuilder(Option& option) : o_(&option) {}
  OptionBuilder& above(double low) { return o_->low = low, o_->low_open = true, *this; }
  OptionBuilder& below(double high) { return o_->high = high, o_->high_open = true, *this; }
  OptionBuilder& at_least(double low) { return o_->low = low, *this; }
  OptionBuilder& at_most(double high) { return o_->high = high, *this; }
  /// A default out of range that means "not given".
  OptionBuilder& off(double value) { return o_->off = value, *this; }
  OptionBuilder& said(std::string text) { return o_->in_errors = std::move(text), *this; }
  OptionBuilder& flag(std::string flag) { return o_->flag = std::move(flag), *this; }
  /// The member, if its name differs from that of the option; with its struct, if that is not the schema's.
  OptionBuilder& member(const std::string& member) {
    return o_->member = o_->member.substr(0, o_->member.rfind("::") + 2) + member, *this;
  }
  OptionBuilder& unit(std::string unit) { return o_->unit = std::move(unit), *this; }
  OptionBuilder& shown(std::string placeholder) { return o_->placeholder = std::move(placeholder), *this; }
  OptionBuilder& or_else(std::string note) { return o_->default_note = std::move(note), *this; }
  OptionBuilder& effect(Effect effect) { return o_->effect = effect, *this; }
  OptionBuilder& required(bool on = true) { return o_->required = on, *this; }
  /// A second flag for the same option.
  OptionBuilder& also(std::string flag) { return o_->aliases.push_back(std::move(flag)), *this; }
  /// An earlier name, without dashes: it works for one release and reports the new one.
  OptionBuilder& formerly(std::string name) { return o_->former.push_back(std::move(name)), *this; }
  OptionBuilder& positional() { return o_->positional = true, *this; }
  /// A file; `endings` are those of its writer, in lower case. A name without an ending matches any of them.
  OptionBuilder& file(Option::Use use, std::vector<std::string> endings = {}) {
    return o_->use = use, o_->endings = std::move(endings), *this;
  }
  OptionBuilder& example(std::string text) { return o_->example = std::move(text), *this; }
  OptionBuilder& parts(std::string between = ",") { return o_->parts = std::move(between), *this; }
  /// Restricts the choices to these names.
  OptionBuilder& among(std::vector<std::string> names);
  /// Whether the shell has the option too.
  OptionBuilder& in_shell(bool yes) { return o_->in_shell = yes, *this; }

 private:
  Option* o_;
};

template <class Options>
class Schema : public OptionList {
 public:
  Schema() { defaults_ = std::make_shared<Options>(); }

  /// The struct's name in C++, without lockstep::.
  void of(std::string type) { type_ = std::move(type); }

  /// Adds an option for a member. `name` is that of Python; the flag is the same with hyphens.
  template <class B, class M>
  OptionBuilder option(const std::string& name, M B::* member, std::string help) {
    return option(name, member, std::move(help),
                  schema_detail::names_of<typename schema_detail::Element<M>::type>());
  }
  /// Adds an option of any type that is read from a text and printed as a text. `form` describes the text. `read` throws
  /// InputError for invalid text, or bad_text() with a more specific reason. If the default is printed as an empty text,
  /// an empty text restores it; otherwise an empty text is rejected.
  template <class B, class M>
  OptionBuilder text(const std::string& name, M B::* member, std::string help, std::string form,
                     std::string (*print)(const M&), M (*read)(const std::string&)) {
    static_assert(std::is_base_of_v<B, Options>);
    return text(
        name, std::move(help), std::move(form),
        [member, print](const Options& options) { return print(options.*member); },
        [member, read, none = static_cast<const Options*>(defaults_.get())->*member](
            Options& options, const std::string& value) {
          options.*member = value.empty() ? none : read(value);
        });
  }
  /// The same for a value that is not a single member; `read` also accepts the empty text.
  OptionBuilder text(const std::string& name, std::string help, std::string form,
                     std::function<std::string(const Options&)> print,
                     std::function<void(Options&, const std::string&)> read) {
    Option o;
    o.name = name;
    o.help = std::move(help);
    o.form = std::move(form);
    o.optional = print(*static_cast<const Options*>(defaults_.get())).empty();
    o.get = [print = std::move(print)](const void* options) {
      return print(*static_cast<const Options*>(options));
    };
    o.set = [read = std::move(read)](void* options, const OptionValue& value) {
      read(*static_cast<Options*>(options), std::get<std::string>(value));
    };
    return OptionBuilder(add(std::move(o)));
  }
  template <class B, class M>
  OptionBuilder option(const std::string& name, M B::* member, std::string help,
                       std::vector<Choice<typename schema_detail::Element<M>::type>> names) {
    static_assert(std::is_base_of_v<B, Options>);
    Option o;
    o.name = name;
    o.help = std::move(help);
    o.kind = names.empty() ? schema_detail::kind_of<M>() : Option::Kind::choice;
    o.list = schema_detail::IsList<M>::value;
    o.optional = schema_detail::IsOptional<M>::value && names.empty();
    if constexpr (std::is_same_v<M, int>)
      o.low = std::numeric_limits<int>::min(), o.high = std::numeric_limits<int>::max();
    for (const auto& c : names) o.choices.emplace_back(c.name);
    const auto of = [member](auto* options) -> auto& {
      using Struct = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(options)>>,
                                        const Options, Options>;
      return static_cast<Struct*>(options)->*member;
    };
    if constexpr (schema_detail::IsList<M>::value) {
      o.get = [of, names](const void* options) {
        std::vector<OptionValue> items;
        for (const auto& item : of(options)) items.push_back(schema_detail::to_value(item, names));
        return schema_detail::list_value(items);
      };
      o.set = [of, names, item = o](void* options, const OptionValue& value) {
        of(options).clear();
        for (const OptionValue& v : schema_detail::list_items(item, std::get<std::string>(value)))
          of(options).push_back(schema_detail::from_value(v, names));
      };
    } else if constexpr (schema_detail::IsOptional<M>::value) {
      using T = typename M::value_type;
      o.get = [of, names](const void* options) -> OptionValue {
        const M& found = of(options);
        if (!names.empty()) return schema_detail::to_value(found, names);
        return found ? schema_detail::to_value<T>(*found, {}) : OptionValue();
      };
      o.set = [of, names](void* options, const OptionValue& value) {
        if (!names.empty())
          of(options) = schema_detail::from_value(value, names);
        else if (std::holds_alternative<std::monostate>(value))
          of(options) = std::nullopt;
        else
          of(options) = schema_detail::from_value<T>(value, {});
      };
    } else {
      o.get = [of, names](const void* options) { return schema_detail::to_value(of(options), names); };
      o.set = [of, names](void* options, const OptionValue& value) {
        of(options) = schema_detail::from_value(value, names);
      };
    }
    return OptionBuilder(add(std::move(o)));
  }
  /// Adds the options of a member, except those in `without`, with their rules and groups.
  template <class B, class M>
  void include(M B::* member, const std::set<std::string>& without = {}) {
    const Schema<M>& inner = schema_of<M>();
    const auto into = [member](auto* options) -> auto* {
      using Struct = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(options)>>,
                                        const Options, Options>;
      return &(static_cast<Struct*>(options)->*member);
    };
    include(inner, into, without);
  }
  /// The same for a base class.
  template <class B>
  void include_base(const std::set<std::string>& without = {}) {
    static_assert(std::is_base_of_v<B, Options>);
    include(
        schema_of<B>(),
        [](auto* options) -> auto* {
          if constexpr (std::is_const_v<std::remove_pointer_t<decltype(options)>>)
            return static_cast<const B*>(static_cast<const Options*>(options));
          else
            return static_cast<B*>(static_cast<Options*>(options));
        },
        without);
  }

  /// The heading in help texts of options added or included after this call.
  void heading(std::string heading) { heading_ = std::move(heading); }
  /// Changes an option that was included.
  OptionBuilder change(std::string_view name) { return OptionBuilder(find_mutable(name)); }
  void group(OptionGroup group) { groups_.push_back(std::move(group)); }
  void conflict(std::string one, std::string other) {
    rules_.push_back({OptionError::Kind::conflict, std::move(one), std::move(other), {}, {}, {}});
  }
  /// Rejects `option` if it is given although it has no effect: `where` returns true.
  void useless(const std::string& option, std::function<bool(const Options&)> where, std::string what,
               std::string expected) {
    rules_.push_back({OptionError::Kind::useless, option, "", erased(std::move(where)), std::move(what),
                      std::move(expected)});
  }
  /// Rejects a call without `option` if it is required: `where` returns true.
  void needed(const std::string& option, std::function<bool(const Options&)> where, std::string what,
              std::string expected) {
    rules_.push_back({OptionError::Kind::missing, option, "", erased(std::move(where)), std::move(what),
                      std::move(expected)});
  }
  /// Functions that set dependent options: prepare() before the rules, derive() after them.
  void prepare(std::function<void(Options&, const Given&)> work) {
    prepared_.push_back(erased_work(std::move(work)));
  }
  void derive(std::function<void(Options&, const Given&)> work) {
    derived_.push_back(erased_work(std::move(work)));
  }

 private:
  static std::function<bool(const void*)> erased(std::function<bool(const Options&)> f) {
    return [f = std::move(f)](const void* options) { return f(*static_cast<const Options*>(options)); };
  }
  static Work erased_work(std::function<void(Options&, const Given&)> work) {
    return [work = std::move(work)](void* options, const Given& given) {
      work(*static_cast<Options*>(options), given);
    };
  }
  template <class M, class Into>
  void include(const Schema<M>& inner, Into into, const std::set<std::string>& without) {
    const OptionList& list = inner;
    for (Option o : list.options()) {
      if (without.contains(o.name)) continue;
      o.get = [get = o.get, into](const void* options) { return get(into(options)); };
      o.set = [set = o.set, into](void* options, const OptionValue& value) { set(into(options), value); };
      if (o.heading.empty()) o.heading = heading_;
      options_.push_back(std::move(o));
    }
    for (const OptionGroup& g : list.groups()) groups_.push_back(g);
    for (Rule r : list.rules()) {
      if (r.broken)
        r.broken = [broken = r.broken, into](const void* options) { return broken(into(options)); };
      rules_.push_back(std::move(r));
    }
    const auto of_member = [into](const Work& work) {
      return [work, into](void* options, const Given& given) { work(into(options), given); };
    };
    for (const Work& work : list.prepared()) prepared_.push_back(of_member(work));
    for (const Work& work : list.derived()) derived_.push_back(of_member(work));
  }
};

/// The schema of a struct, created once by its describe().
template <class Options>
const Schema<Options>& schema_of() {
  static const Schema<Options> schema = [] {
    Schema<Options> s;
    describe(s);
    return s;
  }();
  return schema;
}

/// The options of a command such as "flow.run".
struct NamedSchema {
  std::string command;
  const OptionList* options = nullptr;
};

}  // namespace lockstep
