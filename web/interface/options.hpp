// Options of the library by their names, as a page gives them in one object.
#pragma once

#include "calls.hpp"
#include "lockstep/schema.hpp"

namespace lockstep::web {

/// Sets what the member `options` of a request holds; null is none. `given`: options that the call sets otherwise. Errors name
/// options as the page spells them.
void set_options(const OptionList& list, void* options, const Json& request, const char* call,
                 Given given = {});

template <class Options>
Options given_options(const Json& request, const char* call) {
  Options options;
  set_options(schema_of<Options>(), &options, request, call);
  return options;
}

}  // namespace lockstep::web
