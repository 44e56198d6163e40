#include "command.hpp"

#include "../arrays.hpp"
#include "core/schema/shell_flags.hpp"

namespace lockstep::web {

CallFiles::CallFiles(const Json& request) : given_(named_arrays(request, "files")) {
  for (const auto& [name, array] : given_) files_.given[name] = array.raw();
  platform::memory_files() = &files_;
}
CallFiles::~CallFiles() { platform::memory_files() = nullptr; }

Json CallFiles::written() const {
  std::vector<std::pair<std::string, Array>> all;
  for (const auto& [name, content] : files_.written)
    all.emplace_back(
        name, Array::of(std::vector<uint8_t>(content.begin(), content.end()), {int64_t(content.size())}));
  return handles_of(all);
}

std::vector<NamedSchema>& commands() {
  static std::vector<NamedSchema> all;
  return all;
}

namespace {

/// An option as the types of lockstep.d.ts show it.
Json described(const OptionList& list, const Option& o) {
  return {{"name", o.name},
          {"kind", o.kind == Option::Kind::text || o.kind == Option::Kind::choice ? "string"
                   : o.kind == Option::Kind::flag                                 ? "boolean"
                                                                                  : "number"},
          {"input", o.use == Option::Use::input},
          {"list", o.list},
          {"parts", o.parts},
          {"choices", o.choices},
          {"required", o.required},
          {"default", list.default_text(o.name)},
          {"help", spelled(o.help, list.in_python(""))}};
}

}  // namespace

void add_command_calls(Calls& calls) {
  calls["commands"] = [](const Json&) {
    Json names = Json::array();
    for (const NamedSchema& known : commands()) names.push_back(known.command);
    return names;
  };
  calls["options"] = [](const Json& request) {
    const std::string name = text(request, "command");
    Json all = Json::array();
    for (const NamedSchema& known : commands())
      if (known.command == name)
        for (const Option& o : known.options->options())
          if (!is_shell_alone(o) && is_on_pages(o)) all.push_back(described(*known.options, o));
    return all;
  };
}

}  // namespace lockstep::web
