// The function behind a kernel with the type of offsets open (kIndexType): what rewrites of kernels begin with.
#pragma once

#include "lockstep/kernel/kernel.hpp"

namespace lockstep::ir {

const Function& traced_form(const Kernel& kernel);

}  // namespace lockstep::ir
