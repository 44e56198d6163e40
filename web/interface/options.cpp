#include "options.hpp"

namespace lockstep::web {

void set_options(const OptionList& list, void* options, const Json& request, const char* call, Given given) {
  const Json& all = member(request, "options");
  if (!all.is_object()) throw InputError("options", call, "an object");
  try {
    for (const auto& [name, value] : all.items()) {
      if (value.is_null()) continue;
      if (!list.find(name)) throw InputError("option " + name, call, "an option of this call");
      if (value.is_structured()) throw InputError("option " + name, call, "a number, a text, true or false");
      list.set_text(options, name, value.is_string() ? value.get<std::string>() : value.dump(), given);
    }
    list.finish(options, given);
  } catch (const OptionError& e) { throw e.in(list.in_python(call)); }
}

}  // namespace lockstep::web
