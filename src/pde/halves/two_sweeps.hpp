// The two-sweep path: when, and with which tile and chunk.
#pragma once

#include "device/variants/variants.hpp"
#include "pde/halves/half_sweep.hpp"

namespace lockstep::pde {

/// Why the two sweeps cannot do a problem, or an empty text.
std::string two_sweep_refusal(const Discretisation& d, const Device& device, const KernelForm& form,
                              const std::vector<FieldLevel>& outputs);
/// Tiles of the two sweeps; groups sum the loss in orders of their own.
const variants::Computation& half_tile_computation();
/// Tile and chunk of a half. `wide`: whether all arrays begin at multiples of 16 bytes.
HalfShape choose_half(const Discretisation& d, const Device& device, const KernelForm& form, SweepHalf half,
                      const std::vector<FieldLevel>& outputs, int64_t members, bool wide,
                      const LossOptions& options);
/// Groups of a launch over `members` grids.
Shape half_extent(const Discretisation& d, const HalfShape& shape, int64_t members);

}  // namespace lockstep::pde
