// Arrays of a page on the host, by their handles.
#pragma once

#include "calls.hpp"
#include "lockstep/array.hpp"

namespace lockstep::web {

Handles<Array>& arrays();

}  // namespace lockstep::web
