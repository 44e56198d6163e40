// Elementary functions become their bodies of src/math.
//
// After it no LOCKSTEP_MATH row is left in exact numerics; in fast numerics f32 rows stay where the target
// has a hardware form. A sine and a cosine of one operand in one block share the reduction of the angle; the
// bits are those of either alone. It runs after contract_fma, because the bodies' arithmetic is final:
// their error bounds hold for these operations only.
#pragma once

#include "compile/lower.hpp"

namespace lockstep::compile {

void expand_math(ir::Function& f, const LowerOptions& options);

/// Whether fast numerics leave this row to the target's hardware form.
bool has_fast_form(ir::Op op, Type type, Target target);

}  // namespace lockstep::compile
