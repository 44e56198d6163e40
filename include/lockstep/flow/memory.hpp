// Memory that a simulation takes on a device, known before it is made.
#pragma once

#include "lockstep/flow.hpp"

namespace lockstep::flow {

/// Bytes that a Solver of these settings takes on such a device, by the lengths of its arrays. Throws as check() does.
int64_t memory_bytes(const Model& model, const Stepping& stepping, Storage precision, int64_t members,
                     const DeviceInfo& device);

}  // namespace lockstep::flow
