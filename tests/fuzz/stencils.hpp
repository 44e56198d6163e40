// Random stencils: points kernels that read grids around the point under every boundary rule, from whole buffers and
// from windows of larger ones, and write at the point.
#pragma once

#include "generator.hpp"

namespace lockstep::fuzz {

/// Whether this recipe's kernel is a stencil: one of eight, of the full profile without a flaw.
bool draws_stencil(const Recipe& recipe);
Program stencil(const Recipe& recipe);

}  // namespace lockstep::fuzz
