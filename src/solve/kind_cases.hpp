// The gradient of every kind of term in f64: the same bits in exact numerics on every device, within 1e-10 in
// fast numerics.
#pragma once

#include "lockstep/verify.hpp"

namespace lockstep::solve {

/// Cases solve.kinds.NAME of pose graphs, cameras, curves, mesh terms, star energies and sketch constraints.
void add_kind_cases(CaseRegistry& registry);

}  // namespace lockstep::solve
