// Graduated non-convexity: robust losses begin wide.
#pragma once

#include "lockstep/solve.hpp"

namespace lockstep::solve {

class CheckpointFile;

/// Options::graduation as minimisations in a row. The summary is that of the last one, with the iterations of
/// all; the initial cost is that of the losses as they are.
Summary minimize_graduated(Problem& problem, Context& context, const Options& options, CheckpointFile& file);

}  // namespace lockstep::solve
