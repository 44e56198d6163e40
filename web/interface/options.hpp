// Options of the library by their names, as a page gives them in one object.
#pragma once

#include "calls.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::web {

/// Whether an option is one of a call whose written files are part of the answer; pictures are not.
bool is_on_pages(const Option& option);

/// Whether an option names a folder of files to be read; a page gives an array of files.
bool is_input_folder(const Option& option);

/// Sets what the member `options` of a request holds; null is none. Options that name files are refused, except names
/// of written ones where it has a member `files`; required ones count as given: the call has their contents. Errors name
/// options as the page spells them.
void set_options(const OptionList& list, void* options, const Json& request, const char* call);

template <class Options>
Options given_options(const Json& request, const char* call, Options options = {}) {
  set_options(schema_of<Options>(), &options, request, call);
  return options;
}
/// Work with them, whose own errors of options are spelled likewise.
template <class Options, class Work>
auto with_options(const Json& request, const char* call, Work work, Options options = {}) {
  options = given_options(request, call, std::move(options));
  try {
    return work(options);
  } catch (const OptionError& e) { throw e.in(schema_of<Options>().in_python(call)); }
}

}  // namespace lockstep::web
