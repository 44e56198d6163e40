// Flags that change what the program shows or its exit code, and no result: declared with the options of their command, so that
// help, completion, rules, records and reference tables know them. They have no member and no keyword.
#pragma once

#include <string>

#include "lockstep/schema.hpp"

namespace lockstep {

/// The command asks whether it was given. Heading, conflicts and included structs as for options.
void add_shell_flag(OptionList& list, const std::string& name, std::string help);
inline bool is_shell_alone(const Option& option) { return option.member.empty(); }

}  // namespace lockstep
