// Arrays of a page on the host, by their handles.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "calls.hpp"
#include "lockstep/array.hpp"

namespace lockstep::web {

Handles<Array>& arrays();

/// The arrays of a request's member, an object of their handles by names.
std::map<std::string, Array> named_arrays(const Json& request, const char* name);
/// Handle, shape and type by names; the page reads and frees them.
Json handles_of(std::span<const std::pair<std::string, Array>> named);

}  // namespace lockstep::web
