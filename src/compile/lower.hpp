// The pass pipeline: from the traced function to what a target prints or lowers.
#pragma once

#include "lockstep/device.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

enum class Target : uint8_t { cpu, cuda, wgsl, interp };

struct LowerOptions {
  Target target = Target::interp;
  Numerics numerics = Numerics::exact;
};

/// Contraction, expansion of elementary functions (exact numerics), simplification, common subexpressions,
/// loop-invariant motion, dead code. Every target gets the same arithmetic in exact numerics.
ir::Function lower(const ir::Function& traced, const LowerOptions& options);

}  // namespace lockstep::compile
