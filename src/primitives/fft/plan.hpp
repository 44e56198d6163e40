// Forms of the transform, from which a plan chooses. All give the same bits.
#pragma once

#include <vector>

#include "device/variants/variants.hpp"
#include "lockstep/fft.hpp"

namespace lockstep::primitives::fft {

const variants::Computation& fft_computation();
/// The variants of `primitives.fft`.
enum class Form : uint8_t {
  passes,  // passes over memory
  blocks,  // lines in groups of lanes
  lanes,   // a line in each lane
};
/// A form and the limits that it has to keep. Lines that the form does not serve go in passes.
struct Choice {
  Form form = Form::passes;
  Limits limits;
};
/// FftOptions::variant, else the fastest form.
Choice choice_for(const DeviceInfo& device, const FftOptions& options);
/// The same of forms whose plans the device's free memory holds.
Choice choice_for(const Device& device, const FftOptions& options);

/// Kernels of a plan; no device.
std::vector<Kernel> plan_kernels(const FftOptions& options, const Choice& choice);
/// Bytes that a plan takes: tables, Bluestein's factors, scratch arrays; no device.
int64_t plan_bytes(const FftOptions& options, const Choice& choice);

}  // namespace lockstep::primitives::fft
