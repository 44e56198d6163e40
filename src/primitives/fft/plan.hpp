// What a plan chooses from: forms of the transform. All give the same bits; tests choose them one by one.
#pragma once

#include <vector>

#include "lockstep/fft.hpp"

namespace lockstep::primitives::fft {

enum class Form : uint8_t {
  automatic,  // what the device runs best
  passes,     // passes over memory
  blocks,     // lines in groups of lanes
  lanes,      // a line in each lane
};
/// Form of plans that are made from now on; for tests.
void set_form(Form form);
/// The form that plans on this device take.
Form form_for(const Device& device);

/// Kernels of a plan in one form; no device.
std::vector<Kernel> plan_kernels(const FftOptions& options, Form form);

}  // namespace lockstep::primitives::fft
