// Kernels of the factorisation by fronts. Tables are those of FrontPlan; every sum runs in one order.
#pragma once

#include <vector>

#include "lockstep/device.hpp"
#include "lockstep/kernel.hpp"

namespace lockstep::solve {

enum class FrontStep : uint8_t {
  scatter,   // values into the panels
  diagonal,  // adds to the diagonal, and keeps it
  gather,    // children's Schur complements into pivot columns, in the order of children
  panel,     // a block of pivots and the rows below it
  trail,     // what the block changes in later pivot columns
  update,    // Schur complement: children's less the product of the rows below
  invert,    // diagonal blocks of L
  least,     // least pivot of each kLeastChunk
  order,     // unknowns into the order
  forward,   // L x = b: pivots
  rows,      // what the pivots change below
  columns,   // L^T x = b: what the rows below change
  backward,  // pivots
  restore,   // unknowns out of the order
};
inline constexpr int kFrontSteps = int(FrontStep::restore) + 1;
inline constexpr int kLeastChunk = 2048;

/// A failed pivot is stored in `pivots` as its place in the order minus this; others as their ratio to the diagonal
/// element, at most 1.
inline constexpr double kFailedPivot = 16'777'216;

/// The kernel of a step for numbers of f32 or f64.
const Kernel& front_kernel(FrontStep step, Storage real);

}  // namespace lockstep::solve
