// Shared by losses by the kernels and by the plain reference.
#pragma once

#include <cmath>

#include "lockstep/error.hpp"
#include "lockstep/pde/divided.hpp"
#include "lockstep/pde/run.hpp"

namespace lockstep::pde {

inline Mesh mesh_of(const RunOptions& o, const std::array<int64_t, 3>& cells) {
  return {.cells = cells, .spacing = o.spacing, .dt = o.dt, .boundary = o.boundary, .order = o.order};
}

inline void sum_terms(RunResult& result, const RunOptions& options) {
  for (const auto& [name, value] : result.terms) result.loss += value;
  if (!std::isfinite(result.loss))
    throw InputError("the loss is not finite", options.where,
                     "fields whose squares are within the range of the type; the range of f64 is larger");
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
class Fields;
class SideValues;
/// Types and shapes of the fields of three levels that the terms mention, and of the mask.
void check_fields(CheckedArrays& checked, const TransportOptions& terms);
struct TakenFields {
  NamedArrays arrays;
  Array mask;  // empty: none
};
/// Their elements: all, or the planes that a rank holds.
TakenFields take_fields(const CheckedArrays& checked, const TransportOptions& terms,
                        const DividedLoss* loss = nullptr);
/// They and the sides' values on a device.
Inputs upload_inputs(const Device& device, const TakenFields& taken, const TransportOptions& terms,
                     const SideValues& sides);

/// As with named arrays.
RunResult run_loss(Context& context, const Fields& fields, const RunOptions& options,
                   const parallel::Group& group);
RunResult run_trajectory(Context& context, const Fields& fields, const RunOptions& options,
                         const parallel::Group& group);

/// Stage "pde.reference". Throws InputError for terms, boundaries and results that the reference has not.
RunResult run_reference(Context& context, const TakenFields& taken, const RunOptions& options);

}  // namespace lockstep::pde
