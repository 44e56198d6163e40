// Paths that a loss may take, for tests that all of them pass.
#pragma once

#include <vector>

#include "lockstep/pde.hpp"

namespace lockstep::pde::testing {

/// Two kernels, these by slabs, and the fused one with tiles that small grids cut.
inline std::vector<LossOptions> paths() {
  LossOptions two, slabs, fused;
  two.path = slabs.path = Path::two_kernel;
  slabs.slab = 3;
  fused.path = Path::fused;
  fused.tile_x = 16, fused.tile_y = 2, fused.tile_rows = 2, fused.chunk = 5;
  return {two, slabs, fused};
}

}  // namespace lockstep::pde::testing
