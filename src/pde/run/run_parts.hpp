// Shared by losses by the kernels and by the plain reference.
#pragma once

#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/pde/run.hpp"

namespace lockstep::pde {

inline Mesh mesh_of(const RunOptions& o, const std::array<int64_t, 3>& cells) {
  return {.cells = cells, .spacing = o.spacing, .dt = o.dt, .boundary = o.boundary, .order = o.order};
}

inline void sum_terms(RunResult& result, const RunOptions& options) {
  for (const auto& [name, value] : result.terms) result.loss += value;
  if (!std::isfinite(result.loss))
    throw InputError("the loss is not finite", options.where,
                     "fields whose squares the type holds; f64 holds more");
}

inline bool wanted_level(Gradients gradients, int level) {
  switch (gradients) {
    case Gradients::none: return false;
    case Gradients::t1: return level == 0;
    case Gradients::t1t2: return level >= 0;
    default: return true;
  }
}

class CheckedArrays;
class SideValues;
/// The fields of three levels that the terms mention.
void check_fields(CheckedArrays& checked, const TransportOptions& terms);
/// They, the mask and the sides' values on a device.
Inputs upload_inputs(const Device& device, const NamedArrays& arrays, const Array& mask,
                     const TransportOptions& terms, const SideValues& sides);

/// Stage "pde.reference". Throws InputError for terms, boundaries and results that the reference has not.
RunResult run_reference(Context& context, const NamedArrays& arrays, const Array& mask,
                        const RunOptions& options);

}  // namespace lockstep::pde
