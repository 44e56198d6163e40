// The environment variables that are read, in one table: variables.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::environment {

enum class Readers { user, program, tests, system };
enum class Kind { text, count, choice, folder, folders, fault };

struct Variable {
  const char* name;
  Readers readers;
  Kind kind;
  std::string_view words, effect;
};
std::span<const Variable> variables();

/// The text of a variable of the table; nullptr where it is not set or empty. Throws InputError that names the variable where
/// its kind does not allow the text.
const char* text(std::string_view name);

/// The variables of users that are set, with their texts.
std::vector<std::pair<std::string_view, std::string>> set_by_user();

/// Throws as text() does for each variable that is set; once, warns of a LOCKSTEP_ name that the table lacks.
void check();

}  // namespace lockstep::environment
