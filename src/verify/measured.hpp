// Errors of cases as they were measured: what bounds each output of a case by itself.
#pragma once

#include <optional>
#include <string>

#include "lockstep/verify.hpp"

namespace lockstep {

/// The two sides of a comparison: WebGPU with the exact back ends, or either with the plain reference.
struct Measured {
  bool webgpu = false, reference = false;
};

/// The output of `c` whose relative maximum exceeds ten times the measured one, as text; nothing where all keep to it
/// or none was measured. The measured values are the largest over the case's small sizes (measured_errors.inc, written
/// by scripts/measure_errors.py).
std::optional<std::string> beyond_measured(const Case& c, const Comparison& got, Measured pair);

}  // namespace lockstep
