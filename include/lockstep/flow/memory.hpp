// Memory that a simulation takes on a device, known before it is made.
#pragma once

#include "lockstep/flow/run.hpp"

namespace lockstep::flow {

/// Bytes that a Solver of these settings takes on such a device, by the lengths of its arrays. Throws as check() does.
int64_t memory_bytes(const Model& model, const Stepping& stepping, Storage precision, int64_t members,
                     const DeviceInfo& device);

/// Throws InputError, naming the grid's option or `sizes`, where neither the device nor, with a fallback, the host can
/// hold the fields of a run whose grid was given.
void require_memory(Context& context, const RunOptions& run, bool fallback,
                    const std::string& sizes = "{ny}");

}  // namespace lockstep::flow
