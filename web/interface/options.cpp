#include "options.hpp"

#include <algorithm>

namespace lockstep::web {

bool is_input_folder(const Option& option) {
  return option.use == Option::Use::input && (option.placeholder == "DIR" || option.flag == "DIR");
}

namespace {

/// An array or an object as the text of an option that has parts: "1,2", "a=1,b=2".
std::string text_of_parts(const Json& value, const std::string& between) {
  std::string all;
  for (const auto& [key, item] : value.items()) {
    if (!all.empty()) all += between;
    if (value.is_object()) all += key + "=";
    all += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return all;
}

std::string text_of(const Option& option, const Json& value, const char* call) {
  if (is_input_folder(option)) {  // of the files that the call has
    if (!value.is_array()) throw InputError("option " + option.name, call, "an array of { name, bytes }");
    return ".";
  }
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  if (!option.list && option.parts.empty())
    throw InputError("option " + option.name, call, "a number, a text, true or false");
  return text_of_parts(value, option.list ? "," : option.parts);
}

}  // namespace

bool is_on_pages(const Option& option) {
  const auto is_picture = [](const std::string& ending) {
    return ending == ".png" || ending == ".svg" || ending == ".html";
  };
  return option.use != Option::Use::output_file || option.endings.empty() ||
         !std::ranges::all_of(option.endings, is_picture);
}

void set_options(const OptionList& list, void* options, const Json& request, const char* call) {
  const Json& all = member(request, "options");
  if (!all.is_object()) throw InputError("options", call, "an object");
  const bool has_files = request.contains("files");
  Given given;
  for (const Option& option : list.options())
    if (option.required && option.use != Option::Use::value && !has_files) given.insert(option.name);
  try {
    for (const auto& [name, value] : all.items()) {
      const Option* const option = list.find(name);
      if (!option || !(has_files ? is_on_pages(*option) : option->use == Option::Use::value))
        throw InputError("option " + name, call,
                         has_files ? "an option of this call; a page draws its own pictures"
                                   : "an option of this call; a page has no files");
      if (value.is_null()) continue;
      list.set_text(options, name, text_of(*option, value, call), given);
    }
    list.finish(options, given);
  } catch (const OptionError& e) { throw e.in(list.in_python(call)); }
}

}  // namespace lockstep::web
