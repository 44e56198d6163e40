// LLVM IR and assembly of a kernel, for readers.
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/device.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

/// Optimised LLVM IR or assembly of a traced kernel. `cpu` is an LLVM processor name ("x86-64-v3"); empty
/// means this machine's. Throws UnsupportedError without LLVM, InputError for an unknown processor.
std::string emit_llvm(const ir::Function& function, Numerics numerics, bool assembly,
                      const std::string& cpu = "");

/// LLVM instructions of a kernel's longest block, as generated and in the pieces that are compiled.
struct BlockLengths {
  size_t generated = 0, compiled = 0;
};
BlockLengths block_lengths(const ir::Function& function, Numerics numerics, const std::string& cpu = "");

}  // namespace lockstep::compile
