// Incompressible flow, written out by hand: what kernels of the Value graph are measured against.
#pragma once

#include "lockstep/pde.hpp"
#include "lockstep/verify.hpp"
#include "pde/fused/fused_layout.hpp"

namespace lockstep::pde {

/// Loss and gradients of incompressible_flow() in one sweep: f32, order 2, periodic, without the Value graph.
/// Parameters: u_0, u_1, u_2 at levels -1, 0, +1 and p (rank 4), their gradients d_…, partial sums (2, groups),
/// nx, ny, nz, chunk (planes of a group), kt = 1 / (2 dt), kx … = 1 / (2 h), vx … = nu / h^2, seed_momentum and
/// seed_divergence. Cells along x and y are multiples of the tile, along x of 4; chunks divide the cells along z;
/// a group has a lane for each cell around its tile.
Kernel flow_by_hand(const FusedShape& shape);

/// That kernel bound to a problem; the tile by the size. Throws UnsupportedError where no tile divides the
/// grid.
struct FlowByHand {
  Device device;
  Kernel kernel;
  Shape extent;
  std::vector<Argument> arguments;
  std::vector<Buffer> gradients;  // of u at levels -1, 0, +1, of p
  Buffer partial;                 // sums of squared cotangents: (2, groups)
  std::array<double, 2> scale;    // from those sums to the terms of the loss
  void run() const { device.launch_with(kernel, extent, arguments, {}); }
  double loss() const;
};
FlowByHand bind_flow_by_hand(const Device& device, const Mesh& mesh, const Inputs& inputs,
                             const LossOptions& options = {});

/// The cases pde.navier_stokes.graph and pde.navier_stokes.by_hand.
void add_flow_cases(CaseRegistry& registry);

inline constexpr double kFlowViscosity = 0.05, kFlowDivergence = 0.5;

}  // namespace lockstep::pde
