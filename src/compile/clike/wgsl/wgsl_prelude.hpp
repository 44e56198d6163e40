// Helper functions of generated WGSL.
#pragma once

#include <span>

#include "compile/clike/printer.hpp"

namespace lockstep::clike {

/// In a legal order of definition. `branches`: conditions of the computed fma are joined by && and ||.
std::span<const Helper> wgsl_helpers(bool branches);

/// The tree of control.hpp: v[i] = v[i] op v[i + s] for s = lanes/2 … 1.
std::string wgsl_reduce_function(Type type, ir::Reduction kind, int lanes);

}  // namespace lockstep::clike
