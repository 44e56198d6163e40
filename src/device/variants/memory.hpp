// The choice among variants by the scratch memory that they take: what they allocate beyond inputs and outputs.
#pragma once

#include <cstdint>
#include <string>

#include "device/variants/variants.hpp"

namespace lockstep::variants {

/// Why so much scratch memory does not fit what is free; empty: it does.
std::string no_memory(int64_t scratch_bytes, int64_t free_bytes);
/// The same of a device for a variant, with a line that says so once. The device is not asked about a few bytes.
std::string no_memory(const Computation& computation, int variant, const Device& device,
                      int64_t scratch_bytes);

/// `applies` for choose() with the memory of the device: `scratch(number)` is asked of variants that apply.
template <class Applies, class Scratch>
auto with_memory(const Computation& computation, const Device& device, Applies applies, Scratch scratch) {
  return [&computation, &device, applies, scratch](int variant) {
    std::string reason = applies(variant);
    return reason.empty() ? no_memory(computation, variant, device, scratch(variant)) : reason;
  };
}

}  // namespace lockstep::variants
