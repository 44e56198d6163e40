// Examples without time.
#pragma once

#include "lockstep/pde/examples.hpp"

namespace lockstep::pde {

/// Cells along an axis of the grids that a steady example is solved on, the finest first.
std::vector<int64_t> grids_of(const Example& example);

/// Finds the fields of a square example by minimising its loss, on coarse grids first: each twice as fine as the one
/// before, at most `windows` of the example. Starts at rest. `progress` is called after each grid.
TrainResult train_steady(const Device& device, const Example& example, const TrainOptions& options,
                         const std::function<void()>& progress);

}  // namespace lockstep::pde
