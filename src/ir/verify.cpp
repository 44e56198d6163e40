#include "lockstep/ir/function.hpp"

namespace lockstep::ir {
void verify(const Function&) {}
}  // namespace lockstep::ir
