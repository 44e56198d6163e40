#pragma once

#include "lockstep/device.hpp"

namespace lockstep::flow {

/// `from`, f32 or f64, in another of the two; itself where it is that already.
Buffer converted(const Device& device, const Buffer& from, Storage storage);

}  // namespace lockstep::flow
