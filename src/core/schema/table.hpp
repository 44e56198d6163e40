// The reference table of a command's options.
#pragma once

#include <string>

#include "lockstep/schema.hpp"

namespace lockstep {

/// Markdown: names in the shell, Python and C++, values, default, effect, help.
std::string markdown_table(const OptionList& list);

}  // namespace lockstep
