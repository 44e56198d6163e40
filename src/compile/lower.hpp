// The pass pipeline: from the traced function to what a target prints or lowers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

enum class Target : uint8_t { cpu, cuda, wgsl, interp };

struct LowerOptions {
  Target target = Target::interp;
  Numerics numerics = Numerics::exact;
  /// Optimisations to leave out, by pass_names(). No choice changes a bit of a kernel's results. The
  /// environment's LOCKSTEP_SKIP_PASSES, a comma-separated list, adds to it.
  std::vector<std::string> skip{};
  /// Called with the function as traced ("traced") and after each pass that ran. LOCKSTEP_DUMP_PASSES names a
  /// folder that receives the printed text of each as <kernel>.<number>.<pass>.ir.
  std::function<void(std::string_view pass, const ir::Function& f)> observe{};
  /// Whether to verify the function after each pass; always done in debug builds.
  bool verify_passes = false;
};

/// The optimisations in the order in which they run first.
const std::vector<std::string>& pass_names();

/// Contraction, expansion of elementary functions (exact numerics), then the optimisations: calls, promotion of
/// variables, simplification, common subexpressions, loop-invariant motion, dead code. The first two define a
/// kernel's arithmetic and always run; for the interpreter nothing else does. Every target gets the same
/// arithmetic in exact numerics.
ir::Function lower(const ir::Function& traced, const LowerOptions& options);

}  // namespace lockstep::compile
