// Whether buffers share memory: an exact search among the elements of any strides.
#pragma once

#include "device/backend.hpp"

namespace lockstep::device {

/// Whether a byte belongs to elements of both; elements of `a_bytes` and `b_bytes`. Empty bindings share nothing. Exact
/// for all strides that are 0 or more, except that sets of four and more long axes in no order count as overlapping where
/// the search exceeds 2^18 steps.
bool overlap(const Binding& a, const Binding& b, int64_t a_bytes, int64_t b_bytes);

/// Whether two positions of an array are the same element; exact in the same sense.
bool overlaps_itself(const Shape& shape, const std::array<int64_t, 4>& strides);

/// "strides (0, 1) of shape (3, 4)"
std::string layout_text(const Buffer& buffer);

}  // namespace lockstep::device
