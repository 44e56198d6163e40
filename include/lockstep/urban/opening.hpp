// Runs that open their device while they read their rasters, because opening a GPU takes a fifth of a second.
#pragma once

#include <functional>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

/// Opens a context that outlives the run. Called once, on another thread.
using OpenContext = std::function<Context&()>;

/// The runs of urban.hpp. If both the inputs and the device are invalid, the error of the inputs is thrown.
ShadowRunResult run(const OpenContext& open, const ShadowRunOptions& options);
SkyRunResult run(const OpenContext& open, const SkyRunOptions& options);

}  // namespace lockstep::urban
