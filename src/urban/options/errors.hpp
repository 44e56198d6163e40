// Errors of files whose texts name options of a run in braces. Each front end inserts its own spelling.
#pragma once

#include <string>

#include "lockstep/schema.hpp"

namespace lockstep::urban {

/// `place`: a file or a line of it.
OptionError file_error(std::string what, std::string place, std::string expected, std::string hint = "");

}  // namespace lockstep::urban
