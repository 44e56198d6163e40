// Checks of what a kernel's author promises and no back end looks at: every coordinate lies inside its axis,
// all lanes of a group agree on a uniform() value.
#pragma once

#include "device/interp/program.hpp"

namespace lockstep::interp {

/// Checks before a load, store or asynchronous copy of a buffer; the offset as a whole is
/// checked by the access itself. Coordinates are known where the offset has the form that the kernel language
/// writes.
std::vector<AxisCheck> axis_checks(const Program& program, const ir::Instruction& access);

/// a, b: first and number of Program::axis_checks; dst, more: result of the access and its lanes. A coordinate
/// outside makes the access one out of bounds, which gives 0 and writes nothing.
void check_axes(Machine& m, const Code& c);

/// a: the value; b, c: first and number of Program::turn_slots, which tell the turns of the loops around it. Of
/// a points kernel, whose groups a back end chooses, all points of a dispatch have to agree.
void check_uniform(Machine& m, const Code& c);

}  // namespace lockstep::interp
