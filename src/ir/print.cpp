#include <fmt/format.h>

#include "lockstep/ir/function.hpp"

namespace lockstep::ir {
std::string print(const Function& function) { return function.name; }
std::string print(const Function& function, Id id) { return fmt::format("{} %{}", function.name, id); }
std::string fingerprint(const Function& function) { return print(function); }
}  // namespace lockstep::ir
