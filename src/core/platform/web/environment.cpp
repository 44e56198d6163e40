// A page has no environment variables.
#include "core/environment/environment.hpp"

namespace lockstep::environment {

std::span<const Variable> variables() { return {}; }
const char* text(std::string_view) { return nullptr; }
void check() {}

}  // namespace lockstep::environment
