// The two-kernel path: residuals write cotangents to memory, the adjoint gathers them.
#pragma once

#include "pde/language/checked.hpp"

namespace lockstep::pde {

/// Fills `bound` with the launches of a loss and its gradients. `fields` and `gradients` are the kernels'
/// arrays; `seeds` the factors 2 w seed / N by residual.
void bind_two_kernels(BoundLoss::State& bound, Loss::State& loss, const Checked& checked, KernelForm form,
                      const LossOptions& options, Type sum, std::vector<Argument> fields,
                      std::vector<Argument> gradients, const std::vector<double>& seeds);

std::string outputs_key(const std::vector<FieldLevel>& outputs);

}  // namespace lockstep::pde
