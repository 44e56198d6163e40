#pragma once

#include "lockstep/forecast/train.hpp"
#include "lockstep/parallel.hpp"

namespace lockstep::forecast {

/// The runs of all ranks in their order, on rank 0; elsewhere none. Collective.
std::vector<TrainRun> gather_runs(const parallel::Group& group, const std::vector<TrainRun>& mine);

}  // namespace lockstep::forecast
