// The memory that a simulation needs on a device, computed before it is created.
#pragma once

#include "lockstep/flow/run.hpp"

namespace lockstep::flow {

/// Bytes that a Solver with these settings allocates on such a device. Throws as check().
int64_t memory_bytes(const Model& model, const Stepping& stepping, Storage precision, int64_t members,
                     const DeviceInfo& device);

/// Throws InputError, naming the option of the grid or `sizes`, if neither the device nor, with fallback, the host
/// can hold the fields of a run with an explicit grid.
void require_memory(Context& context, const RunOptions& run, bool fallback,
                    const std::string& sizes = "{ny}");

}  // namespace lockstep::flow
