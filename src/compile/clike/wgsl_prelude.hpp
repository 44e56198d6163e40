// Helper functions of generated WGSL.
#pragma once

#include <span>

#include "compile/clike/printer.hpp"

namespace lockstep::clike {

/// In a legal order of definition.
std::span<const Helper> wgsl_helpers();

}  // namespace lockstep::clike
