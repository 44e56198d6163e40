// The order of the passes.
#include "compile/dead_code.hpp"
#include "compile/expand_math.hpp"
#include "compile/lower.hpp"

namespace lockstep::compile {

ir::Function lower(const ir::Function& traced, const LowerOptions& options) {
  ir::verify(traced);
  ir::Function f = traced;
  expand_math(f, options);
  if (options.target != Target::interp) dead_code(f);
  ir::verify(f);
  return f;
}

}  // namespace lockstep::compile
