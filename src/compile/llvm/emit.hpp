// LLVM IR and assembly of a kernel, for readers.
#pragma once

#include <string>

#include "lockstep/device.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

/// Optimised LLVM IR or assembly of a traced kernel. `cpu` is an LLVM processor name ("x86-64-v3"); empty
/// means this machine's. Throws UnsupportedError without LLVM, InputError for an unknown processor.
std::string emit_llvm(const ir::Function& function, Numerics numerics, bool assembly,
                      const std::string& cpu = "");

}  // namespace lockstep::compile
