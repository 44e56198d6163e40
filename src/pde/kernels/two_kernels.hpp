// The two-kernel path: residuals write cotangents to memory, the adjoint gathers them.
#pragma once

#include "pde/language/checked.hpp"

namespace lockstep::pde {

/// How the planes of a grid are worked on: `slab` at a time, cotangents in a ring of planes. Whole grids of all
/// members are in memory at once; slabs take one member after the other.
struct Slabs {
  int64_t slab, shift, ring, held;
  bool whole;
  Shape cotangents, sums;  // scratch memory: of a level, in KernelForm::scratch() and in the type of the sums
  Slabs(const Discretisation& d, int64_t members, int64_t planes);
};

/// Fills `bound` with the launches of a loss and its gradients. `common`: fields, mask, gradients and numbers
/// by name.
void bind_two_kernels(BoundLoss::State& bound, Loss::State& loss, const Checked& checked, KernelForm form,
                      const LossOptions& options, Type sum, const Arguments& common);

/// Adds the launch of `total` over sums (residuals, planes, chunks), or for a part of a grid keeps the sums of its planes.
void bind_total(BoundLoss::State& bound, const Loss::State& loss, const Kernel& total, const Buffer& sums,
                const Buffer& totals);

/// Gradients that are requested.
std::vector<FieldLevel> wanted_outputs(const Plan& plan, const LossOptions& options);
std::string outputs_key(const std::vector<FieldLevel>& outputs);

}  // namespace lockstep::pde
