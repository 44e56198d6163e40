// The sort by a given form, for cases and tests; sort_by_key chooses the form.
#pragma once

#include "lockstep/primitives.hpp"
#include "primitives/sort/radix.hpp"

namespace lockstep::primitives {

/// sort_by_key.
void radix_sort(const Device& device, Radix form, const Buffer& keys, const Buffer& values,
                const Buffer& sorted_keys, const Buffer& sorted_values, int bits, const Stream& stream);

/// i32 from u32: offsets that a scan gives.
const Kernel& offsets_kernel();
/// Indices outside of 0 … extent - 1 as `extent`, the others as they are.
Kernel clamp_kernel(Storage index);

}  // namespace lockstep::primitives
