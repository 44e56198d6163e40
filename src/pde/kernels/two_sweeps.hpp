// The two-sweep path: when, and with which tile and chunk.
#pragma once

#include "pde/kernels/stream.hpp"

namespace lockstep::pde {

/// Why the two sweeps cannot do a problem, or an empty text.
std::string two_sweep_refusal(const Discretisation& d, const Device& device, const KernelForm& form,
                              const std::vector<FieldLevel>& outputs);
/// Tile and chunk of a stage. `wide`: whether all arrays begin at multiples of 16 bytes.
StreamShape choose_stream(const Discretisation& d, const Device& device, const KernelForm& form,
                          StreamStage stage, const std::vector<FieldLevel>& outputs, int64_t members,
                          bool wide, const LossOptions& options);
/// Groups of a launch over `members` grids.
Extent stream_extent(const Discretisation& d, const StreamShape& shape, int64_t members);

}  // namespace lockstep::pde
