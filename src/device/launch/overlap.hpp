// Whether two buffers of one launch share an element.
#pragma once

#include "device/backend.hpp"

namespace lockstep::device {

/// Exact where both have the same strides (windows of one array), else whether the
/// spans from first to last element meet. Empty bindings share nothing.
bool overlap(const Binding& a, Binding b, int64_t element_bytes);

}  // namespace lockstep::device
