// Forms of the transform, from which a plan chooses. All give the same bits; tests choose them one by one.
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
/// A form and the limits that it has to keep. Lines that the form does not serve go in passes.
struct Choice {
  Form form = Form::passes;
  Limits limits;
};
Choice choice_for(const DeviceInfo& device);

/// Kernels of a plan; no device.
std::vector<Kernel> plan_kernels(const FftOptions& options, const Choice& choice);
/// Bytes that a plan takes: tables, Bluestein's factors, scratch arrays; no device.
int64_t plan_bytes(const FftOptions& options, const Choice& choice);

}  // namespace lockstep::primitives::fft
