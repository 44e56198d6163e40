// The sort by a given form, for cases and tests; sort_by_key chooses the form.
#pragma once

#include "lockstep/primitives.hpp"
#include "primitives/sort/radix.hpp"

namespace lockstep::primitives {

/// sort_by_key.
void radix_sort(const Device& device, Radix form, const Buffer& keys, const Buffer& values,
                const Buffer& sorted_keys, const Buffer& sorted_values, int bits, const Stream& stream);

/// Throws InputError unless the keys are u32, i32 or f32 and so few that their positions are i32.
void expect_keys(const Buffer& keys, std::string_view where);

/// Beginnings of runs in each chunk, and the runs; groups of so many lanes.
Kernel run_counts_kernel(Storage keys, int lanes);
Kernel runs_kernel(Storage keys, int lanes);

/// i32 from u32: offsets that a scan gives.
const Kernel& offsets_kernel();
/// Indices outside of 0 … extent - 1 as `extent`, the others as they are.
Kernel clamp_kernel(Storage index);

}  // namespace lockstep::primitives
